// A trace holds the last iterations alone, and waits only where there was something to wait for.
#include "train/watch/step_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace teratron::testing {
namespace {

using pipeline::Pass;
using pipeline::TraceSpan;

nlohmann::json written(const StepTrace& trace) {
  const Mesh mesh = make_single_rank_mesh();
  return nlohmann::json::parse(gather_trace(trace, mesh, *mesh.model)).at("traceEvents");
}

TEST(StepTrace, KeepsTheLastIterations) {
  StepTrace trace;
  for (int iteration = 1; iteration <= 53; ++iteration) {
    std::vector<TraceSpan>* const spans = trace.begin(iteration);
    for (int i = 0; i < 3; ++i) spans->push_back({.start = 3.0 * iteration + i, .end = 3.0 * iteration + i + 1});
  }
  const nlohmann::json events = written(trace);
  std::multiset<int> iterations;
  for (const nlohmann::json& event : events) {
    if (event.at("ph") == "X") iterations.insert(event.at("args").at("iteration").get<int>());
  }
  EXPECT_EQ(iterations.size(), 60U);
  EXPECT_EQ(*iterations.begin(), 34);
  EXPECT_EQ(*iterations.rbegin(), 53);
}

TEST(StepTrace, NamesWhatWasDone) {
  StepTrace trace;
  std::vector<TraceSpan>& spans = *trace.begin(7);
  using Kind = TraceSpan::Kind;
  const std::vector<std::pair<Kind, Pass>> kinds = {
      {Kind::kPass, Pass::kForward},        {Kind::kPass, Pass::kBackward},    {Kind::kPass, Pass::kBackwardInput},
      {Kind::kPass, Pass::kBackwardWeight}, {Kind::kReceive, Pass::kBackward}, {Kind::kSend, Pass::kForward},
      {Kind::kGradientSums, Pass::kForward}};
  for (const auto& [kind, pass] : kinds) {
    spans.push_back({kind, {.pass = pass, .micro_batch = 3, .slice = 2, .chunk = 1}, 1, 2});
    if (kind != Kind::kPass) spans.push_back({kind, {.pass = pass}, 2, 2});  // no wait
  }
  std::vector<std::string> names;
  for (const nlohmann::json& event : written(trace)) {
    if (event.at("ph") == "M") continue;
    names.push_back(event.at("name"));
    const bool is_of_a_slice = event.at("cat") == "pass" || names.back() == "waiting to receive";
    const nlohmann::json expected =
        is_of_a_slice ? nlohmann::json{{"iteration", 7}, {"micro-batch", 3}, {"slice", 2}, {"chunk", 1}}
                      : nlohmann::json{{"iteration", 7}};
    EXPECT_EQ(event.at("args"), expected);
    EXPECT_EQ(event.at("dur"), 1e6);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"forward", "backward", "backward without weights", "weight gradient",
                                             "waiting to receive", "waiting to send", "gradient sums"}));
}

}  // namespace
}  // namespace teratron::testing
