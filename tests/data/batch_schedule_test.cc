// The ramp of the batch size against Megatron-LM's rule, followed sample by sample.
#include "data/batch_schedule.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace teratron::testing {
namespace {

// The rule in words: the part of the ramp's samples in which the run is decides the size.
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

TEST(BatchSchedule, OneThatGoesOnAfterSoManySamplesIsTheUninterruptedOne) {
  RandomSequence random(RandomStream{.seed = 8});
  const auto at_least_one = [&](std::size_t most) { return 1 + static_cast<std::int64_t>(random.below(most)); };
  for (int trial = 0; trial < 200; ++trial) {
    const BatchRamp ramp{.start = at_least_one(9), .increment = at_least_one(5), .samples = at_least_one(300)};
    const std::int64_t global_batch = ramp.start + ramp.increment * static_cast<std::int64_t>(random.below(8));
    const BatchSchedule whole(global_batch, ramp);
    const auto done = static_cast<std::int64_t>(random.below(60));
    const BatchSchedule rest(global_batch, ramp, {.updates = done, .samples = whole.consumed_after(done)});
    for (std::int64_t update = done; update < done + 80; ++update) {
      ASSERT_EQ(rest.batch_size(update), whole.batch_size(update)) << trial;
      ASSERT_EQ(rest.consumed_after(update), whole.consumed_after(update)) << trial;
    }
  }
}

TEST(BatchSchedule, AfterOtherBatchesTheRuleFollowsTheSamplesAndNotTheUpdates) {
  RandomSequence random(RandomStream{.seed = 9});
  for (int trial = 0; trial < 200; ++trial) {
    const BatchRamp ramp{.start = 2, .increment = 3, .samples = 1 + static_cast<std::int64_t>(random.below(200))};
    const BatchesDone done{.updates = static_cast<std::int64_t>(random.below(50)),
                           .samples = static_cast<std::int64_t>(random.below(300))};
    const BatchSchedule schedule(14, ramp, done);
    std::int64_t consumed = done.samples;
    for (std::int64_t update = done.updates; update < done.updates + 60; ++update) {
      ASSERT_EQ(schedule.consumed_after(update), consumed) << trial;
      ASSERT_EQ(schedule.batch_size(update), size_by_rule(14, ramp, consumed)) << trial;
      consumed += schedule.batch_size(update);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
