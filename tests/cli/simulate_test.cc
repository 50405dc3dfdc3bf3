// teratron simulate, as a user runs it.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "cli/binary.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::json_of;
using ::testing::Not;
using testing::Outcome;
using testing::run_teratron;
using testing::with;
using testing::Words;

const std::string kProfile = TERATRON_SOURCE_DIR "/docs/figures/profile.json";

Outcome simulate(const Words& arguments) { return run_teratron(with({"simulate"}, arguments)); }
nlohmann::json simulated(const Words& arguments) { return json_of(with({"simulate"}, arguments)); }

TEST(Simulate, EveryScheduleTakesTheTimeAndMemoryOfItsClosedForm) {
  const std::vector<Words> schedules = {{"--schedule", "gpipe"},
                                        {"--schedule", "1f1b"},
                                        {"--schedule", "interleaved", "--virtual-stages", "2"},
                                        {"--schedule", "terapipe", "--slices", "4"},
                                        {"--schedule", "seq1f1b", "--slices", "uniform:4"}};
  for (Words arguments : schedules) {
    arguments.insert(arguments.end(), {"--forward-ms", "3", "--backward-ms", "5"});
    const nlohmann::json json = simulated(arguments);
    EXPECT_NEAR(json.at("iteration_ms"), json.at("closed_form").at("iteration_ms"), 1e-9) << arguments[1];
    EXPECT_DOUBLE_EQ(json.at("peak_activations").at(0).at("micro_batches"),
                     json.at("closed_form").at("peak_micro_batches"))
        << arguments[1];
  }
}

TEST(Simulate, DeferredWeightGradientsShortenAnIterationInTheSameMemory) {
  const Words arguments = {"--schedule", "1f1b", "--stages", "4", "--micro-batches", "8"};
  Words deferred = arguments;
  deferred.emplace_back("--defer-weight-gradients");
  const nlohmann::json before = simulated(arguments), after = simulated(deferred);
  EXPECT_LT(after.at("iteration_ms"), before.at("iteration_ms"));
  EXPECT_EQ(after.at("peak_activations").at(0).at("slices"), before.at("peak_activations").at(0).at("slices"));
}

TEST(Simulate, AutoSlicesAddUpAndBeatEveryEvenCut) {
  const auto cut = [](const std::string& schedule, const std::string& slices) {
    return simulated({"--schedule", schedule, "--micro-batches", "1", "--profile", kProfile, "--slices", slices});
  };
  for (const char* schedule : {"terapipe", "seq1f1b"}) {
    const nlohmann::json best = cut(schedule, "auto");
    const std::vector<std::int64_t> lengths = best.at("slice_tokens");
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), 2048);
    for (int slices = 1; slices <= 16; slices *= 2) {
      EXPECT_LE(best.at("iteration_ms"), cut(schedule, std::to_string(slices)).at("iteration_ms"))
          << schedule << " " << slices;
    }
  }
}

TEST(Simulate, AutoSlicesOfSeq1F1BAreNoSlowerThanTeraPipesInItsOrder) {
  for (const char* micro_batches : {"1", "2", "8"}) {
    const auto cut = [&](const std::string& schedule, const std::string& slices) {
      return simulated(
          {"--schedule", schedule, "--micro-batches", micro_batches, "--profile", kProfile, "--slices", slices});
    };
    const std::vector<int> lengths = cut("terapipe", "auto").at("slice_tokens");
    EXPECT_LE(cut("seq1f1b", "auto").at("iteration_ms"),
              cut("seq1f1b", fmt::format("{}", fmt::join(lengths, ","))).at("iteration_ms"));
  }
}

TEST(Simulate, DrawsATimelineForPeopleAndAPicture) {
  const testing::TemporaryFolder folder;
  const std::string svg = (folder.path() / "timeline.svg").string();
  const Outcome outcome = simulate({"--stages", "2", "--micro-batches", "2", "--svg", svg});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("iteration, ms"), HasSubstr("stage 1 "), HasSubstr(svg)));
  EXPECT_THAT(read_file(svg),
              AllOf(HasSubstr("<svg"), HasSubstr("1f1b: 2 stages, 2 micro-batches"), HasSubstr("</svg>")));
}

TEST(Simulate, BadInputIsToldAtOnceWithWhatToDo) {
  const auto expect_fault = [](const Words& arguments, const std::string& message) {
    const Outcome outcome = simulate(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.errors, HasSubstr(message));
    EXPECT_THAT(outcome.output, Not(HasSubstr("iteration")));
  };
  expect_fault({"--schedule", "interleaved", "--micro-batches", "6"}, "nearest are: 4 and 8");
  expect_fault({"--schedule", "gpipe", "--slices", "4"}, "choose terapipe or seq1f1b");
  expect_fault({"--virtual-stages", "2"}, "choose interleaved");
  expect_fault({"--stages", "0"}, "--stages is 0");
  expect_fault({"--forward-ms", "0"}, "--forward-ms is 0");
  expect_fault({"--backward-ms", "nan"}, "--backward-ms");
  expect_fault({"--transfer-ms", "-1"}, "--transfer-ms is -1");
  expect_fault({"--schedule", "terapipe", "--slices", "4,"}, "--slices is '4,'");
  expect_fault({"--schedule", "terapipe", "--slices", "uniform:0"}, "--slices is 'uniform:0'");
  expect_fault({"--schedule", "terapipe", "--slices", "auto"}, "give --profile FILE");
  expect_fault({"--slices", "auto", "--profile", kProfile}, "choose terapipe or seq1f1b");
  expect_fault({"--schedule", "terapipe", "--slices", "1000,1000", "--profile", kProfile}, "add up to 2000 tokens");
  expect_fault({"--profile", kProfile, "--seq-length", "4096"}, "measured up to 2048 tokens");
  expect_fault({"--profile", "/nowhere.json"}, "/nowhere.json");
  expect_fault({"--stages", "9999", "--micro-batches", "999999"}, "actions");
  expect_fault({"--schedule", "terapipe", "--slices", "16000000"}, "--slices");
  expect_fault({"--schedule", "fast"}, "gpipe");
}

}  // namespace
}  // namespace teratron
