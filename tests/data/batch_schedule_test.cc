// The ramp of the batch size against Megatron-LM's rule, followed sample by sample.
#include "data/batch_schedule.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace teratron {
namespace {

// The rule as it is told: which equal part of the ramp's samples the run stands in decides the size.
std::int64_t size_by_rule(std::int64_t global_batch, const BatchRamp& ramp, std::int64_t consumed) {
  const std::int64_t parts = (global_batch - ramp.start) / ramp.increment;
  if (parts == 0 || consumed > ramp.samples) return global_batch;
  std::int64_t part = 0;
  while (part < parts && consumed * parts >= (part + 1) * ramp.samples) ++part;
  return ramp.start + part * ramp.increment;
}

TEST(BatchSchedule, WithoutARampEveryBatchIsTheGlobalOne) {
  const BatchSchedule schedule(48);
  EXPECT_TRUE(schedule.is_constant());
  EXPECT_EQ(schedule.largest(), 48);
  for (const std::int64_t updates : {0, 1, 7, 1000000}) {
    EXPECT_EQ(schedule.batch_size(updates), 48);
    EXPECT_EQ(schedule.consumed_after(updates), 48 * updates);
  }
}

TEST(BatchSchedule, ARampThatDividesEvenlyIsTheClosedForm) {
  // 16 to 64 in three parts of 960 samples: 60 updates of 16, 30 of 32, 20 of 48.
  const BatchSchedule schedule(64, BatchRamp{.start = 16, .increment = 16, .samples = 2880});
  EXPECT_EQ(schedule.consumed_after(60), 960);
  EXPECT_EQ(schedule.batch_size(59), 16);
  EXPECT_EQ(schedule.batch_size(60), 32);
  EXPECT_EQ(schedule.consumed_after(90), 1920);
  EXPECT_EQ(schedule.batch_size(89), 32);
  EXPECT_EQ(schedule.batch_size(90), 48);
  EXPECT_EQ(schedule.consumed_after(110), 2880);
  EXPECT_EQ(schedule.batch_size(110), 64);
  EXPECT_EQ(schedule.consumed_after(110 + 1000), 2880 + 64000);
}

TEST(BatchSchedule, EveryUpdateHasTheSizeOfTheRuleAtTheSamplesConsumed) {
  RandomSequence random(RandomStream{.seed = 6});
  for (int trial = 0; trial < 400; ++trial) {
    const BatchRamp ramp{.start = static_cast<std::int64_t>(1 + random.below(20)),
                         .increment = static_cast<std::int64_t>(1 + random.below(9)),
                         .samples = static_cast<std::int64_t>(1 + random.below(1 + random.below(3000)))};
    const auto increments = static_cast<std::int64_t>(random.below(12));
    const std::int64_t global_batch = ramp.start + increments * ramp.increment;
    const BatchSchedule schedule(global_batch, ramp);
    EXPECT_EQ(schedule.largest(), global_batch);
    std::int64_t consumed = 0, update = 0;
    for (int after_the_ramp = 0; after_the_ramp < 3; ++update) {
      const std::int64_t size = size_by_rule(global_batch, ramp, consumed);
      ASSERT_EQ(schedule.consumed_after(update), consumed)
          << ramp.start << " " << ramp.increment << " " << ramp.samples;
      ASSERT_EQ(schedule.batch_size(update), size) << ramp.start << " " << ramp.increment << " " << ramp.samples;
      if (size == global_batch) ++after_the_ramp;
      consumed += size;
    }
  }
}

TEST(BatchSchedule, TheLargestNumbersDoNotOverflow) {
  const std::int64_t largest = (std::int64_t{1} << 31) - 1;
  const BatchRamp ramp{
      .start = largest - BatchSchedule::kMostIncrements, .increment = 1, .samples = std::int64_t{1} << 45};
  const BatchSchedule schedule(largest, ramp);
  const std::int64_t updates = (std::int64_t{1} << 32) - 1;
  EXPECT_EQ(schedule.batch_size(updates), largest);
  EXPECT_GT(schedule.consumed_after(updates), schedule.consumed_after(updates - 1));
}

}  // namespace
}  // namespace teratron
