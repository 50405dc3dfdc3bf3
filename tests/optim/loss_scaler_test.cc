// The loss scale against Megatron-LM's rule in another form: the scale after a run of updates.
#include "optim/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"

namespace teratron::testing {
namespace {

void repeat(LossScaler& scaler, bool overflow, int times) {
  for (int i = 0; i < times; ++i) scaler.update(overflow);
}

TEST(LossScaler, StartsAtTwoToThe32AndDoublesAfterAThousandGoodUpdates) {
  LossScaler scaler({});
  EXPECT_EQ(scaler.scale(), std::exp2(32));
  repeat(scaler, false, 999);
  EXPECT_EQ(scaler.scale(), std::exp2(32));
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), std::exp2(33));
  repeat(scaler, false, 2000);
  EXPECT_EQ(scaler.scale(), std::exp2(35));
}

TEST(LossScaler, ForgivesOneOverflowAndHalvesWithEachFurther) {
  LossScaler scaler({});
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), std::exp2(32));
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), std::exp2(31));
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), std::exp2(30));
}

// A good update in between does not forgive again; a doubling does.
TEST(LossScaler, HysteresisBeginsAnewWithADoubling) {
  LossScaler scaler({.initial = 64, .window = 3});
  scaler.update(true);
  scaler.update(false);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32);
  repeat(scaler, false, 3);
  EXPECT_EQ(scaler.scale(), 64);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 64);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32);
}

TEST(LossScaler, AnOverflowStartsTheRunOfGoodUpdatesAnew) {
  LossScaler scaler({.initial = 8, .window = 4, .hysteresis = 5});
  repeat(scaler, false, 3);
  scaler.update(true);
  repeat(scaler, false, 3);
  EXPECT_EQ(scaler.scale(), 8);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 16);
}

TEST(LossScaler, StopsAtTheMinimumAndSaysSo) {
  LossScaler scaler({.initial = 8, .minimum = 2, .hysteresis = 1});
  scaler.update(true);
  EXPECT_FALSE(scaler.exhausted());
  scaler.update(true);
  EXPECT_TRUE(scaler.exhausted());
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 2);
}

TEST(LossScaler, AFixedScaleNeverMovesAndIsExhaustedByOverflowsInARow) {
  LossScaler scaler({.fixed = 128});
  repeat(scaler, true, LossScaler::kMostOverflows - 1);
  EXPECT_FALSE(scaler.exhausted());
  repeat(scaler, false, 1);
  repeat(scaler, true, LossScaler::kMostOverflows - 1);
  EXPECT_FALSE(scaler.exhausted());
  scaler.update(true);
  EXPECT_TRUE(scaler.exhausted());
  scaler.restore({.scale = 4, .good_updates = 0, .overflows_left = 1});  // of a run with another scale
  EXPECT_EQ(scaler.scale(), 128);
}

TEST(LossScaler, AFixedScaleThatBecomesDynamicForgivesNoMoreThanTheSettings) {
  LossScaler fixed({.fixed = 64}), dynamic({.hysteresis = 2});
  fixed.update(false);
  dynamic.restore(fixed.state());
  EXPECT_EQ(dynamic.scale(), 64);
  dynamic.update(true);
  EXPECT_EQ(dynamic.scale(), 64);
  dynamic.update(true);
  EXPECT_EQ(dynamic.scale(), 32);
}

TEST(LossScaler, GoesOnFromItsStateAsIfNeverStopped) {
  RandomSequence random({.seed = 3});
  const LossScaling settings{.initial = 1024, .window = 3};
  LossScaler whole(settings), resumed(settings);
  for (int update = 0; update < 200; ++update) {
    const bool overflow = random.below(4) == 0;
    LossScaler next(settings);
    next.restore(resumed.state());
    resumed = next;
    whole.update(overflow);
    resumed.update(overflow);
    ASSERT_EQ(resumed.state(), whole.state()) << update;
  }
}

}  // namespace
}  // namespace teratron::testing
