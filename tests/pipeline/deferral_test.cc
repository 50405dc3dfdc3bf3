#include "pipeline/deferral.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "pipeline/checker.h"
#include "pipeline/random_schedule.h"
#include "pipeline/timing/simulate.h"

namespace teratron::testing {
namespace {

using namespace pipeline;
using ::testing::IsEmpty;

TEST(Deferral, IsFitToRunWithinItsBoundWhateverTheScheduleAndTheCosts) {
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 300; ++trial) {
    const Schedule schedule = any_schedule(random);
    const std::int64_t bound = most_live_slices(schedule) + between(random, 0, 4);
    const Costs costs = even_costs(schedule, random.uniform(), random.uniform(), random.uniform());
    const Schedule deferred = defer_weight_gradients(schedule, costs, bound);
    ASSERT_THAT(schedule_faults(deferred, bound), IsEmpty());
    for (const auto& list : deferred.actions) {
      for (const Action& action : list) ASSERT_NE(action.pass, Pass::kBackward);
    }
  }
}

TEST(Deferral, KeepsTheOrderOfWhatOthersWaitFor) {
  RandomSequence random(RandomStream{.seed = 2});
  for (int trial = 0; trial < 100; ++trial) {
    const Schedule schedule = any_schedule(random);
    const Schedule deferred =
        defer_weight_gradients(schedule, even_costs(schedule, 1, 2), most_live_slices(schedule) + 1);
    for (std::size_t stage = 0; stage < schedule.actions.size(); ++stage) {
      std::vector<Action> before, after;
      for (Action action : schedule.actions[stage]) {
        if (action.pass == Pass::kBackward) action.pass = Pass::kBackwardInput;
        if (action.pass != Pass::kBackwardWeight) before.push_back(action);
      }
      for (const Action& action : deferred.actions[stage]) {
        if (action.pass != Pass::kBackwardWeight) after.push_back(action);
      }
      ASSERT_EQ(before, after);
    }
  }
}

TEST(Deferral, LeavesAThirdOf1F1BsBubbleInTheSameMemory) {
  // The schedule ZB-H1 of arXiv 2401.10241: bubble (p-1)(F + B - W), against (p-1)(F + B + W), where all three are
  // alike.
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 60; ++trial) {
    const int stages = between(random, 1, 8), micro_batches = 2 * stages + between(random, 0, 6);
    const Schedule schedule = make_schedule(ScheduleKind::k1F1B, {.stages = stages, .micro_batches = micro_batches});
    const Costs costs = even_costs(schedule, 1, 2);
    const Simulation simulation = simulate(defer_weight_gradients(schedule, costs, most_live_slices(schedule)), costs);
    ASSERT_NEAR(simulation.iteration - 3.0 * micro_batches, stages - 1, 1e-9) << stages << " " << micro_batches;
  }
}

TEST(Deferral, NeverMakesAnIterationOfLikeStagesLonger) {
  RandomSequence random(RandomStream{.seed = 4});
  for (const ScheduleKind kind : kAllKinds) {
    for (int trial = 0; trial < 60; ++trial) {
      const Schedule schedule = make_schedule(kind, random_size(random, kind));
      const Costs costs = even_costs(schedule, 1, 2, random.below(2) == 0 ? 0 : 0.1);
      const Schedule deferred = defer_weight_gradients(schedule, costs, most_live_slices(schedule));
      ASSERT_LE(simulate(deferred, costs).iteration, simulate(schedule, costs).iteration + 1e-9)
          << name_of(kind) << " " << schedule.stages << " " << schedule.micro_batches << " " << schedule.slices;
    }
  }
}

TEST(Deferral, ABoundBelowWhatTheScheduleNeedsIsOurBug) {
  const Schedule schedule = make_schedule(ScheduleKind::k1F1B, {.stages = 4, .micro_batches = 8});
  EXPECT_THROW(defer_weight_gradients(schedule, even_costs(schedule, 1, 2), 3), InternalError);
}

}  // namespace
}  // namespace teratron::testing
