#include "train/watch/step_trace.h"

#include <fmt/format.h>

#include "telemetry/trace_file.h"

namespace teratron {
namespace {

using pipeline::TraceSpan;

// Longest time of a wait for something that was there already. Such waits are left out.
constexpr double kNoWait = 1e-6;

std::string_view name_of(const TraceSpan& span) {
  switch (span.kind) {
    case TraceSpan::Kind::kReceive: return "waiting to receive";
    case TraceSpan::Kind::kSend: return "waiting to send";
    case TraceSpan::Kind::kGradientSums: return "gradient sums";
    case TraceSpan::Kind::kPass: break;
  }
  return trace_name_of(span.action.pass);
}

TraceEvent event_of(const TraceSpan& span, std::int64_t iteration) {
  const bool is_pass = span.kind == TraceSpan::Kind::kPass;
  TraceEvent event{.name = name_of(span),
                   .category = is_pass ? "pass" : "wait",
                   .start = span.start,
                   .end = span.end,
                   .arguments = {{"iteration", iteration}}};
  // The other waits may be for several actions' results.
  if (is_pass || span.kind == TraceSpan::Kind::kReceive) {
    event.arguments.insert(
        event.arguments.end(),
        {{"micro-batch", span.action.micro_batch}, {"slice", span.action.slice}, {"chunk", span.action.chunk}});
  }
  return event;
}

}  // namespace

std::vector<TraceSpan>* StepTrace::begin(std::int64_t iteration) {
  if (iterations_.size() == kMostIterations) iterations_.pop_front();
  return &iterations_.emplace_back(Iteration{iteration, {}}).spans;
}

std::string StepTrace::text(int rank, const Mesh& mesh) const {
  std::vector<TraceEvent> events;
  for (const Iteration& iteration : iterations_) {
    for (const TraceSpan& span : iteration.spans) {
      if (span.kind != TraceSpan::Kind::kPass && span.end - span.start < kNoWait) continue;
      events.push_back(event_of(span, iteration.number));
    }
  }
  return trace_of_process(
      rank, fmt::format("stage {}, tensor {}, data {}", mesh.pipeline->rank(), mesh.tensor->rank(), mesh.data->rank()),
      events);
}

std::string gather_trace(const StepTrace& trace, const Mesh& mesh, Communicator& world) {
  const std::vector<std::string> parts = world.all_gather_host(trace.text(world.rank(), mesh));
  return world.rank() == 0 ? trace_file(parts) : "";
}

}  // namespace teratron
