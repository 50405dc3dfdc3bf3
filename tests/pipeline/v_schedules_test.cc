// Schedules of the V placement against their paper (arXiv 2405.15362): memory of every stage, and bubbles where
// forward, input gradient and weight gradient take as long.
#include "pipeline/v_schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/checker.h"
#include "pipeline/deferral.h"
#include "pipeline/memory.h"
#include "pipeline/random_schedule.h"
#include "pipeline/timing/simulate.h"

namespace teratron::testing {
namespace {

using namespace pipeline;
using ::testing::IsEmpty;

constexpr std::array kKinds = {ScheduleKind::kVMin, ScheduleKind::kVHalf, ScheduleKind::kVZeroBubble};

TEST(VPlacement, TheFirstStageHoldsTheFirstAndTheLastCell) {
  const CellMap map{.stages = 4, .placement = Placement::kFolded};
  std::vector<int> stages;
  for (int cell = 0; cell < 8; ++cell) stages.push_back(map.stage_of(cell));
  EXPECT_THAT(stages, ::testing::ElementsAre(0, 1, 2, 3, 3, 2, 1, 0));
  for (int cell = 0; cell < 12; ++cell) EXPECT_EQ(map.cell(map.stage_of(cell), cell / 4), cell);
}

Schedule deferred(ScheduleKind kind, const Schedule& schedule, const Costs& costs) {
  return defer_weight_gradients(schedule, costs, deferral_bound(kind, schedule));
}

// Micro-batches that a stage holds at most, and the bubble in passes of a cell. Its rates are 2p / 3m, p / 2m and 0;
// what is left of V-ZB's is the first micro-batch's way to the last stage.
struct PaperCosts {
  int micro_batches = 0;
  double bubble = 0;
};
PaperCosts paper_costs(ScheduleKind kind, int p) {
  if (kind == ScheduleKind::kVMin) return {(p + 4) / 3, 6 * 2 * p / 3.0};
  if (kind == ScheduleKind::kVHalf) return {(p + 2) / 2, 6 * p / 2.0};
  return {p, p - 1.0};
}

TEST(VSchedules, WithWholeSequencesTakeThePapersMemoryAndNoMoreThanItsBubbles) {
  for (const ScheduleKind kind : kKinds) {
    for (int stages = 2; stages <= 24; ++stages) {
      const int micro_batches = 4 * stages;
      const Schedule schedule =
          make_schedule(kind, {.stages = stages, .micro_batches = micro_batches, .virtual_stages = 2});
      const Costs costs = even_costs(schedule, 2, 4);  // 1 for each pass of each cell
      const Schedule apart = deferred(kind, schedule, costs);
      const PaperCosts paper = paper_costs(kind, stages);
      for (const MemoryPeak& peak : memory_peaks(apart)) ASSERT_LE(peak.micro_batches, paper.micro_batches) << stages;
      ASSERT_LE(simulate(apart, costs).iteration - 6.0 * micro_batches, paper.bubble + 1e-9)
          << name_of(kind) << " " << stages;
    }
  }
}

// Without weight gradients apart every stage holds as much as any other, but for the rounding of each cell's lifespan.
TEST(VSchedules, StagesHoldAlikeInTheSteadyState) {
  for (const ScheduleKind kind : kKinds) {
    const int stages = 8;
    const std::vector<MemoryPeak> peaks =
        memory_peaks(make_schedule(kind, {.stages = stages, .micro_batches = 4 * stages, .virtual_stages = 2}));
    const auto [least, most] = std::ranges::minmax(peaks, {}, &MemoryPeak::slices);
    EXPECT_LE(most.slices - least.slices, 1) << name_of(kind);
  }
}

TEST(VSchedules, WithSlicesOfAnyCutAreFitToRunWithinTheirBound) {
  RandomSequence random(RandomStream{.seed = 1});
  for (const ScheduleKind kind : kKinds) {
    for (int trial = 0; trial < 100; ++trial) {
      ScheduleSize size = random_size(random, kind);
      if (random.below(3) == 0) cut_unequally(random, size);
      const std::int64_t bound = v_most_slices(kind, size.stages, size.slices);
      const Schedule schedule = make_schedule(kind, size);
      ASSERT_THAT(schedule_faults(schedule, bound), IsEmpty());
      const Costs costs = even_costs(schedule, random.uniform(), random.uniform(), random.uniform());
      ASSERT_EQ(deferral_bound(kind, schedule), bound);
      ASSERT_THAT(schedule_faults(deferred(kind, schedule, costs), bound), IsEmpty());
    }
  }
}

// The paper's claim for the sake of which there are three: less memory costs time.
TEST(VSchedules, MemoryBuysTime) {
  const ScheduleSize size{.stages = 8, .micro_batches = 4, .slices = 8, .virtual_stages = 2};
  double before = 0;
  std::int64_t held = 1000;
  for (const ScheduleKind kind : {ScheduleKind::kVZeroBubble, ScheduleKind::kVHalf, ScheduleKind::kVMin}) {
    const Schedule schedule = make_schedule(kind, size);
    const Costs costs = even_costs(schedule, 1, 2);
    const Schedule apart = deferred(kind, schedule, costs);
    const double time = simulate(apart, costs).iteration;
    EXPECT_GT(time, before) << name_of(kind);
    EXPECT_LT(most_live_slices(apart), held) << name_of(kind);
    before = time;
    held = most_live_slices(apart);
  }
}

}  // namespace
}  // namespace teratron::testing
