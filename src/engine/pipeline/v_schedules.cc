#include "pipeline/v_schedules.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace teratron::pipeline {
namespace {

// One of a unit's four passes, through all stages.
struct Run {
  Pass pass;
  int chunk;
  bool goes_down;  // from the first stage to the last
  int step;        // from stage to stage
  int start = 0;   // at the stage where it begins

  int at(int stage, int stages) const { return start + step * (goes_down ? stage : stages - 1 - stage); }
};
using Block = std::array<Run, 4>;

// Chooses when the runs start: as soon as the run before has ended and, with a unit every kVInterval, no stage has two
// things to do at a time.
Block building_block(const VSteps& steps, int stages) {
  Block block = {Run{Pass::kForward, 0, true, steps.forward_down}, Run{Pass::kForward, 1, false, steps.forward_up},
                 Run{Pass::kBackward, 1, true, steps.backward_down}, Run{Pass::kBackward, 0, false, steps.backward_up}};
  for (std::size_t i = 1; i < block.size(); ++i) {
    const auto is_free = [&](const Run& run) {
      for (std::size_t other = 0; other < i; ++other) {
        for (int stage = 0; stage < stages; ++stage) {
          if ((run.at(stage, stages) - block[other].at(stage, stages)) % kVInterval == 0) return false;
        }
      }
      return true;
    };
    const int earliest = block[i - 1].start + block[i - 1].step * (stages - 1) + 1;
    block[i].start = earliest;
    while (!is_free(block[i])) {
      ++block[i].start;
      check(block[i].start < earliest + kVInterval, "a run of a building block finds its time");
    }
  }
  return block;
}

struct TimedPass {
  std::int64_t time = 0;
  Action action;
};

std::vector<Action> in_order_of_time(std::vector<TimedPass> passes) {
  std::ranges::sort(passes, {}, &TimedPass::time);
  std::vector<Action> list;
  for (const TimedPass& pass : passes) list.push_back(pass.action);
  return list;
}

}  // namespace

VSteps v_steps(ScheduleKind kind) {
  // Steps down (forward and backward together) and up of 2, 3 and 6: a third, half and all of the memory of 1F1B.
  if (kind == ScheduleKind::kVHalf) return {.forward_down = 2, .forward_up = 1, .backward_down = 2, .backward_up = 1};
  if (kind == ScheduleKind::kVZeroBubble) {
    return {.forward_down = 4, .forward_up = 2, .backward_down = 4, .backward_up = 2};
  }
  return {};
}

std::int64_t v_most_slices(ScheduleKind kind, int stages, int slices) {
  const int micro_batches = kind == ScheduleKind::kVMin    ? (stages + 4) / 3
                            : kind == ScheduleKind::kVHalf ? (stages + 2) / 2
                                                           : stages;
  return std::int64_t{2} * (micro_batches + slices - 1);
}

std::vector<std::vector<Action>> v_actions(const VSteps& steps, const ScheduleSize& size) {
  const Block block = building_block(steps, size.stages);
  std::vector<std::vector<Action>> lists;
  for (int stage = 0; stage < size.stages; ++stage) {
    std::vector<TimedPass> passes;
    std::int64_t first_unit = 0;
    for (int m = 0; m < size.micro_batches; first_unit += size.slices_of(m++)) {
      const int slices = size.slices_of(m);
      for (int s = 0; s < slices; ++s) {
        for (const Run& run : block) {
          const bool is_forward = run.pass == Pass::kForward;
          const std::int64_t turn = first_unit + (is_forward ? s : slices - 1 - s + size.slices - 1);
          passes.push_back({kVInterval * turn + run.at(stage, size.stages), {run.pass, m, s, run.chunk}});
        }
      }
    }
    lists.push_back(in_order_of_time(std::move(passes)));
  }
  return lists;
}

}  // namespace teratron::pipeline
