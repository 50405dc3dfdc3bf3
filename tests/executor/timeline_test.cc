// Moments of a step's memory against all shorter steps that run in it.
#include "executor/timeline.h"

#include <gtest/gtest.h>

#include "pipeline/random_schedule.h"

namespace teratron::testing {
namespace {

using pipeline::Action;
using pipeline::Pass;
using pipeline::Schedule;

int start_of(const Timeline& timeline, const Action& action) {
  const Timeline::Passes& passes = timeline.of({action.chunk, action.micro_batch, action.slice});
  switch (action.pass) {
    case Pass::kForward: return passes.forward;
    case Pass::kBackward:
    case Pass::kBackwardInput: return passes.backward;
    case Pass::kBackwardWeight: return passes.weight;
    default: return -1;  // of no schedule here
  }
}

// A receive is posted while the action before its forward runs (step_run.h). A step with fewer micro-batches leaves
// actions out, so that this may be an earlier one than in the whole step.
TEST(Timeline, AnInputHasItsMemoryFromTheActionBeforeInEveryShorterStep) {
  RandomSequence random({.seed = 3});
  int earlier = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Schedule schedule = any_schedule(random);
    if (schedule.stages == 1 && schedule.virtual_stages > 1) continue;  // which the executor does not have
    const ExecutorOptions options{.schedule = schedule};
    std::vector<int> slices;
    for (int micro_batch = 0; micro_batch < schedule.micro_batches; ++micro_batch) {
      slices.push_back(schedule.slices_of(micro_batch));
    }
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const StageCells cells(2 * schedule.cells(), options, {stage, schedule.stages});
      const Timeline timeline(schedule.actions[static_cast<std::size_t>(stage)], cells, slices);
      for (int count = 1; count <= schedule.micro_batches; ++count) {
        const Schedule shorter = pipeline::first_micro_batches(schedule, count);
        const std::vector<Action>& actions = shorter.actions[static_cast<std::size_t>(stage)];
        for (std::size_t place = 1; place < actions.size(); ++place) {
          if (actions[place].pass != Pass::kForward) continue;
          const int posted = start_of(timeline, actions[place - 1]);
          const Action& forward = actions[place];
          const int planned = timeline.of({forward.chunk, forward.micro_batch, forward.slice}).received;
          ASSERT_LE(planned, posted) << "trial " << trial << " of " << count;
          if (count == schedule.micro_batches) earlier += planned < posted ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(earlier, 0) << "no schedule had such a forward";
}

}  // namespace
}  // namespace teratron::testing
