// Schedules of the V placement (Placement::kFolded with two cells a stage), in which the first stage holds the model's
// first and last cell and every stage holds as many activations as any other (arXiv 2405.15362).
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/generators.h"

namespace teratron::pipeline {

// Times from one stage to the next, where each of the three passes of a cell takes 1. A unit of work, one slice of one
// micro-batch, goes down the V in cell 0 to K - 1 and up in K to 2K - 1, and backward the same way.
//
// Every unit does at every stage what the unit before did kVInterval later, so a cell's activations alive at a moment
// are those of (time from its forward to its backward) / kVInterval units. Its stage's two cells have the same sum of
// these times at every stage if down and up have the same sum of forward and backward steps.
struct VSteps {
  int forward_down = 1, forward_up = 1, backward_down = 1, backward_up = 1;
};
inline constexpr int kVInterval = 6;  // forward and both gradients, of two cells

VSteps v_steps(ScheduleKind kind);

// Slices of a cell that a stage holds at most, with weight gradients apart: the paper's bounds, (p + 4) / 3, (p + 2) /
// 2 and p micro-batches (rounded down) in both cells; of slices as many, and those that wait for the last one to go
// back.
std::int64_t v_most_slices(ScheduleKind kind, int stages, int slices);

// The actions of each stage, with whole backwards; defer_weight_gradients() puts weight gradients apart. Slices take
// turns as micro-batches do, and go backward last to first: each by (slices - 1) units later than micro-batches would.
std::vector<std::vector<Action>> v_actions(const VSteps& steps, const ScheduleSize& size);

}  // namespace teratron::pipeline
