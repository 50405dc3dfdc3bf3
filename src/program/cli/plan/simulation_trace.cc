#include "cli/plan/simulation_trace.h"

#include <algorithm>
#include <array>
#include <vector>

#include "telemetry/trace_file.h"

namespace teratron {
namespace {

using Kind = simulation::Span::Kind;

constexpr double kMilliseconds = 1e-3;

std::string_view name_of(pipeline::Pass pass) {
  switch (pass) {
    case pipeline::Pass::kForward: return "forward";
    case pipeline::Pass::kBackward: return "backward";
    case pipeline::Pass::kBackwardInput: return "backward without weights";
    case pipeline::Pass::kBackwardWeight: return "weight gradient";
    case pipeline::Pass::kEmbedding: return "embedding";
    case pipeline::Pass::kHead: return "head";
    case pipeline::Pass::kEmbeddingBackward: return "embedding's backward";
  }
  return "";
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kOutput: return "activations";
    case Kind::kInputGradient: return "gradients of activations";
    case Kind::kSum: return "sum of gradients";
    case Kind::kTiedSum: return "sum of the tied embedding";
    case Kind::kUpdate: return "update";
    case Kind::kGather: return "gather of weights";
  }
  return "";
}

// Work that does not overlap shares a row.
struct Row {
  const char* name;
  std::vector<Kind> kinds;
};
const std::array<Row, 3> kRows = {
    Row{"sends activations", {Kind::kOutput}},
    Row{"sends gradients", {Kind::kInputGradient}},
    Row{"sums", {Kind::kSum, Kind::kTiedSum, Kind::kGather}},
};

TraceEvent event_of(const pipeline::TimedAction& timed) {
  return {.name = name_of(timed.action.pass),
          .category = "pass",
          .start = timed.start * kMilliseconds,
          .end = timed.end * kMilliseconds,
          .arguments = {
              {"micro-batch", timed.action.micro_batch}, {"slice", timed.action.slice}, {"chunk", timed.action.chunk}}};
}

TraceEvent event_of(const simulation::Span& span) {
  TraceEvent event{
      .name = name_of(span.kind), .category = "communication", .start = span.start, .end = span.end, .arguments = {}};
  if (span.cell >= 0) event.arguments.emplace_back("cell", span.cell);
  if (span.micro_batch >= 0) event.arguments.emplace_back("micro-batch", span.micro_batch);
  if (span.slice >= 0) event.arguments.emplace_back("slice", span.slice);
  return event;
}

}  // namespace

std::string trace_of(const pipeline::Simulation& simulation, std::span<const simulation::Span> spans) {
  const int rows = 1 + static_cast<int>(kRows.size());
  std::vector<std::vector<TraceEvent>> events(simulation.actions.size() * static_cast<std::size_t>(rows));
  for (std::size_t stage = 0; stage < simulation.actions.size(); ++stage) {
    std::vector<TraceEvent>& passes = events[stage * static_cast<std::size_t>(rows)];
    for (const pipeline::TimedAction& timed : simulation.actions[stage]) passes.push_back(event_of(timed));
  }
  for (const simulation::Span& span : spans) {
    std::size_t row = static_cast<std::size_t>(span.stage) * static_cast<std::size_t>(rows);
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      if (std::ranges::find(kRows[i].kinds, span.kind) != kRows[i].kinds.end()) row += i + 1;
    }
    events[row].push_back(event_of(span));
  }
  std::vector<std::string> processes;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].empty()) continue;
    const int row = static_cast<int>(i) % rows;
    const std::string what = row == 0 ? "" : fmt::format(", {}", kRows[static_cast<std::size_t>(row) - 1].name);
    processes.push_back(
        trace_of_process(static_cast<int>(i), fmt::format("stage {}{}", static_cast<int>(i) / rows, what), events[i]));
  }
  return trace_file(processes);
}

}  // namespace teratron
