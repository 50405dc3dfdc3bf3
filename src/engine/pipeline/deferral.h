// Backward in two parts, of which the second waits for a bubble (zero-bubble pipelines, arXiv 2401.10241; MEPipe).
#pragma once

#include <cstdint>

#include "pipeline/generators.h"
#include "pipeline/timing/costs.h"

namespace teratron::pipeline {

// The schedule with every backward in two parts: the input's gradient stays where the backward was, relative to the
// forwards and the other input gradients of its stage; the weights' gradient, which no action waits for, is made when
// - the stage would otherwise wait, as `costs` say (the oldest first), or
// - one more forward would take the stage above `most_slices` live activations (a slice lives until its weight gradient
//   is made), or
// - nothing else is left.
// InternalError if the schedule needs more than `most_slices` anyway, or is not fit to run.
Schedule defer_weight_gradients(const Schedule& schedule, const Costs& costs, std::int64_t most_slices);

// The most live activations of any stage as the schedule stands.
std::int64_t most_live_slices(const Schedule& schedule);

// The bound to defer within: what the schedule needs anyway. Schedules of the V placement are made for weight gradients
// apart, and have their paper's memory for it.
std::int64_t deferral_bound(ScheduleKind kind, const Schedule& schedule);

}  // namespace teratron::pipeline
