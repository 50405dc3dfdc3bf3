// Joint passes of vocabulary parallelism, in schedules of every kind and of no kind.
#include "pipeline/vocabulary_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/trials.h"
#include "pipeline/checker.h"
#include "pipeline/memory.h"
#include "pipeline/random_schedule.h"
#include "pipeline/send_slots.h"
#include "pipeline/timing/simulate.h"

namespace teratron::testing {
namespace {

using namespace pipeline;

Costs costs_with_heads(const Schedule& schedule, double head) {
  Costs costs = even_costs(schedule, 1, 2);
  for (std::vector<PassTimes>& cell : costs.passes) {
    for (PassTimes& times : cell) times.head = head / schedule.slices;
  }
  return costs;
}

template <class Keep>
std::vector<Action> kept(std::vector<Action> list, const Keep& keep) {
  std::erase_if(list, [&](const Action& action) { return !keep(action); });
  return list;
}

TEST(VocabularyPasses, KeepTheOrderOfAllElseAndAreTheSameOnAllStages) {
  for (std::uint64_t seed = 1; seed <= trials(300U); ++seed) {
    RandomSequence random(RandomStream{.seed = seed});
    const Schedule schedule = any_schedule(random);
    Costs costs = random_costs(schedule, random);
    costs.transfers.assign(static_cast<std::size_t>(schedule.slices), random.uniform());
    const Schedule joint = with_vocabulary_passes(schedule, costs);
    EXPECT_EQ(schedule_faults(joint), std::vector<std::string>()) << "seed " << seed;
    const auto is_new = [](const Action& action) { return is_joint(action.pass); };
    for (std::size_t stage = 0; stage < joint.actions.size(); ++stage) {
      EXPECT_EQ(kept(joint.actions[stage], std::not_fn(is_new)), schedule.actions[stage]) << "seed " << seed;
      EXPECT_EQ(kept(joint.actions[stage], is_new), kept(joint.actions.front(), is_new)) << "seed " << seed;
      EXPECT_EQ(memory_peaks(joint)[stage].slices, memory_peaks(schedule)[stage].slices) << "seed " << seed;
    }
    EXPECT_GE(send_slots(joint), 2) << "seed " << seed;  // ends with some number of them
    const int fewer = between(random, 1, joint.micro_batches);
    EXPECT_EQ(schedule_faults(first_micro_batches(joint, fewer)), std::vector<std::string>()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

// The head's time is added to that of a pipeline without one, on whichever stage: nobody waits for it.
TEST(VocabularyPasses, TakeASlotOfTheirOwnInTheSteadyState) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::k1F1B, ScheduleKind::kInterleaved,
                                  ScheduleKind::kTeraPipe, ScheduleKind::kSeq1F1B, ScheduleKind::kSeq1F1BInterleaved}) {
    for (const int stages : {2, 3, 4, 8}) {
      const ScheduleTraits& traits = traits_of(kind);
      ScheduleSize size{.stages = stages,
                        .micro_batches = 8 * stages,
                        .slices = traits.takes_slices ? 4 : 1,
                        .virtual_stages = traits.most_cells > 1 ? 2 : 1};
      const Schedule plain = make_schedule(kind, size);
      size.vocabulary_parallel = true;
      for (const double head : {0.1, 0.7, 1.4, 5.0}) {
        const Costs costs = costs_with_heads(plain, head);
        const double least = simulate(plain, costs).iteration + size.micro_batches * head;
        const Schedule joint = with_vocabulary_passes(make_schedule(kind, size), costs);
        EXPECT_NEAR(simulate(joint, costs).iteration / least, 1, 0.01) << name_of(kind) << ", " << stages << " stages";
      }
    }
  }
}

TEST(VocabularyPasses, OfOneStageInAnotherOrderAreFaults) {
  const Schedule plain =
      make_schedule(ScheduleKind::k1F1B, {.stages = 3, .micro_batches = 6, .vocabulary_parallel = true});
  const Schedule schedule = with_vocabulary_passes(plain, costs_with_heads(plain, 1));
  int tried = 0;
  for (std::size_t stage = 0; stage < 3; ++stage) {
    for (std::size_t i = 0; i + 1 < schedule.actions[stage].size(); ++i) {
      Schedule swapped = schedule;
      std::vector<Action>& list = swapped.actions[stage];
      if (!is_joint(list[i].pass) || !is_joint(list[i + 1].pass)) continue;
      std::swap(list[i], list[i + 1]);
      EXPECT_FALSE(schedule_faults(swapped).empty()) << stage << ", " << i;
      ++tried;
    }
    Schedule missing = schedule;
    std::vector<Action>& list = missing.actions[stage];
    list.erase(std::ranges::find_if(list, [](const Action& action) { return action.pass == Pass::kHead; }));
    EXPECT_FALSE(schedule_faults(missing).empty()) << stage;
  }
  EXPECT_GT(tried, 10);
  Schedule undeclared = schedule;
  undeclared.vocabulary_parallel = false;
  EXPECT_FALSE(schedule_faults(undeclared).empty());
}

}  // namespace
}  // namespace teratron::testing
