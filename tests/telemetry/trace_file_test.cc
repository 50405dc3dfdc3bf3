// Trace files are JSON that says of every event when it began and how long it took, to the nanosecond.
#include "telemetry/trace_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/philox.h"

namespace teratron::testing {
namespace {

TEST(TraceFile, HoldsEveryEventOfEveryProcess) {
  RandomSequence random(RandomStream{.seed = 4});
  std::vector<std::vector<TraceEvent>> events(3);
  std::vector<std::string> parts;
  for (int process = 0; process < 3; ++process) {
    double now = 1e6;  // a machine that has been up for days
    for (std::uint64_t i = random.below(20); i > 0; --i) {
      const double start = now + static_cast<double>(random.below(1000)) * 1e-6;
      now = start + static_cast<double>(random.below(1000)) * 1e-6;
      events[static_cast<std::size_t>(process)].push_back(
          {.name = random.below(2) == 0 ? "forward" : "a \"name\"\n\\",
           .category = "pass",
           .start = start,
           .end = now,
           .arguments = {{"slice", static_cast<std::int64_t>(random.below(9))}, {"iteration", -1}}});
    }
    parts.push_back(trace_of_process(process, "stage \"" + std::to_string(process) + "\"",
                                     events[static_cast<std::size_t>(process)]));
  }
  const nlohmann::json file = nlohmann::json::parse(trace_file(parts));
  std::vector<std::size_t> seen(3);
  std::vector<std::string> names(3);
  for (const nlohmann::json& there : file.at("traceEvents")) {
    const auto process = there.at("pid").get<std::size_t>();
    if (there.at("ph") == "M") {
      if (there.at("name") == "process_name") names[process] = there.at("args").at("name");
      continue;
    }
    ASSERT_EQ(there.at("ph"), "X");
    ASSERT_LT(seen[process], events[process].size());
    const TraceEvent& event = events[process][seen[process]++];
    EXPECT_EQ(there.at("name"), event.name);
    EXPECT_EQ(there.at("cat"), event.category);
    EXPECT_NEAR(there.at("ts").get<double>(), event.start * 1e6, 1e-3);
    EXPECT_NEAR(there.at("dur").get<double>(), (event.end - event.start) * 1e6, 1e-3);
    EXPECT_EQ(there.at("args").at("slice"), event.arguments[0].second);
    EXPECT_EQ(there.at("args").at("iteration"), -1);
  }
  for (std::size_t process = 0; process < 3; ++process) {
    EXPECT_EQ(seen[process], events[process].size());
    EXPECT_EQ(names[process], "stage \"" + std::to_string(process) + "\"");
  }
}

TEST(TraceFile, IsAFileWithoutSpansToo) {
  EXPECT_TRUE(nlohmann::json::parse(trace_file({})).at("traceEvents").empty());
  const std::vector<std::string> parts = {trace_of_process(0, "stage 0", {})};
  EXPECT_EQ(nlohmann::json::parse(trace_file(parts)).at("traceEvents").size(), 2U);
}

}  // namespace
}  // namespace teratron::testing
