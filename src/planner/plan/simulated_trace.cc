#include "plan/simulated_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "pipeline/timing/trace.h"
#include "telemetry/trace_file.h"

namespace teratron::plan {
namespace {

using SpanKind = simulation::Span::Kind;

constexpr double kMillisecond = 1e-3;  // in seconds

std::string_view kind_name(SpanKind kind) {
  switch (kind) {
    case SpanKind::kOutput: return "activations";
    case SpanKind::kInputGradient: return "gradients of activations";
    case SpanKind::kSum: return "sum of gradients";
    case SpanKind::kTiedSum: return "sum of the tied embedding";
    case SpanKind::kUpdate: return "update";
    case SpanKind::kGather: return "gather of weights";
  }
  return "";
}

// Row of a stage for work that does not overlap.
struct TraceRow {
  const char* name;
  std::vector<SpanKind> kinds;
};
const std::array<TraceRow, 3> kTraceRows = {
    TraceRow{"sends activations", {SpanKind::kOutput}},
    TraceRow{"sends gradients", {SpanKind::kInputGradient}},
    TraceRow{"sums", {SpanKind::kSum, SpanKind::kTiedSum, SpanKind::kGather}},
};

TraceEvent event_of(const pipeline::TimedAction& timed) {
  return {.name = trace_name_of(timed.action.pass),
          .category = "pass",
          .start = timed.start * kMillisecond,
          .end = timed.end * kMillisecond,
          .arguments = {
              {"micro-batch", timed.action.micro_batch}, {"slice", timed.action.slice}, {"chunk", timed.action.chunk}}};
}

TraceEvent event_of(const simulation::Span& span) {
  TraceEvent event{
      .name = kind_name(span.kind), .category = "communication", .start = span.start, .end = span.end, .arguments = {}};
  if (span.cell >= 0) event.arguments.emplace_back("cell", span.cell);
  if (span.micro_batch >= 0) event.arguments.emplace_back("micro-batch", span.micro_batch);
  if (span.slice >= 0) event.arguments.emplace_back("slice", span.slice);
  return event;
}

}  // namespace

std::string trace_of(const pipeline::Simulation& timeline, std::span<const simulation::Span> spans) {
  const int rows = 1 + static_cast<int>(kTraceRows.size());
  std::vector<std::vector<TraceEvent>> events(timeline.actions.size() * static_cast<std::size_t>(rows));
  for (std::size_t stage = 0; stage < timeline.actions.size(); ++stage) {
    std::vector<TraceEvent>& passes = events[stage * static_cast<std::size_t>(rows)];
    for (const pipeline::TimedAction& timed : timeline.actions[stage]) passes.push_back(event_of(timed));
  }
  for (const simulation::Span& span : spans) {
    std::size_t row = static_cast<std::size_t>(span.stage) * static_cast<std::size_t>(rows);
    for (std::size_t i = 0; i < kTraceRows.size(); ++i) {
      if (std::ranges::find(kTraceRows[i].kinds, span.kind) != kTraceRows[i].kinds.end()) row += i + 1;
    }
    events[row].push_back(event_of(span));
  }
  std::vector<std::string> processes;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].empty()) continue;
    const int row = static_cast<int>(i) % rows;
    const std::string what = row == 0 ? "" : fmt::format(", {}", kTraceRows[static_cast<std::size_t>(row) - 1].name);
    processes.push_back(
        trace_of_process(static_cast<int>(i), fmt::format("stage {}{}", static_cast<int>(i) / rows, what), events[i]));
  }
  return trace_file(processes);
}

}  // namespace teratron::plan
