// A simulated step as a trace: passes by stage, and rows beside them for what links carry.
#include "plan/simulated_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace teratron::testing {
namespace {

using pipeline::Pass;
using simulation::Span;
using Json = nlohmann::json;

TEST(SimulatedTrace, MessagesAndSumsHaveRowsOfTheirOwn) {
  pipeline::Simulation timeline;
  timeline.actions = {{{{.pass = Pass::kForward}, 0, 500}, {{.pass = Pass::kBackward}, 2000, 3000}},
                      {{{.pass = Pass::kForward}, 600, 1000}, {{.pass = Pass::kBackward}, 1000, 1900}}};
  const std::vector<Span> spans = {
      {.kind = Span::Kind::kOutput, .stage = 0, .micro_batch = 0, .slice = 0, .start = 0.5, .end = 0.6},
      {.kind = Span::Kind::kSum, .stage = 1, .cell = 1, .start = 1.9, .end = 2.4},
      {.kind = Span::Kind::kGather, .stage = 1, .cell = 1, .start = 2.4, .end = 2.5},
      {.kind = Span::Kind::kUpdate, .stage = 0, .start = 3, .end = 3.1}};
  const Json trace = Json::parse(plan::trace_of(timeline, spans));
  std::map<int, std::string> rows;
  std::map<std::string, std::set<std::string>> events;  // of each row
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "M" || event.at("name") != "process_name") continue;
    rows[event.at("pid").get<int>()] = event.at("args").at("name").get<std::string>();
  }
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    events[rows.at(event.at("pid").get<int>())].insert(event.at("name").get<std::string>());
  }
  const std::map<std::string, std::set<std::string>> expected = {
      {"stage 0", {"forward", "backward", "update"}},
      {"stage 0, sends activations", {"activations"}},
      {"stage 1", {"forward", "backward"}},
      {"stage 1, sums", {"sum of gradients", "gather of weights"}}};
  EXPECT_EQ(events, expected);
  EXPECT_EQ(Json::parse(plan::trace_of(timeline)).dump().find("sends"), std::string::npos);
}

}  // namespace
}  // namespace teratron::testing
