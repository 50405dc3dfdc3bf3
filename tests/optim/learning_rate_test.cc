#include "optim/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace teratron {
namespace {

const LearningRateSchedule kSchedule{.peak = 3.0, .minimum = 1.0, .warmup = 10, .decay = 110};

LearningRateSchedule with_style(DecayStyle style) {
  LearningRateSchedule schedule = kSchedule;
  schedule.style = style;
  return schedule;
}

TEST(LearningRate, RisesInAStraightLineThroughTheOriginWhateverTheDecay) {
  for (const DecayStyle style : {DecayStyle::kConstant, DecayStyle::kLinear, DecayStyle::kCosine}) {
    for (std::int64_t update = 1; update <= 10; ++update) {
      EXPECT_DOUBLE_EQ(with_style(style).at(update), 0.3 * static_cast<double>(update));
    }
  }
}

TEST(LearningRate, DecaysAsItsNameSaysAndStaysAtTheMinimum) {
  for (std::int64_t update = 10; update <= 110; ++update) {
    const double progress = static_cast<double>(update - 10) / 100;
    EXPECT_DOUBLE_EQ(with_style(DecayStyle::kConstant).at(update), 3.0);
    EXPECT_NEAR(with_style(DecayStyle::kLinear).at(update), 3.0 - 2.0 * progress, 1e-14);
    EXPECT_NEAR(with_style(DecayStyle::kCosine).at(update), 2.0 + std::cos(std::numbers::pi * progress), 1e-14);
  }
  for (const std::int64_t update : {110, 111, 100000}) {
    EXPECT_DOUBLE_EQ(with_style(DecayStyle::kLinear).at(update), 1.0);
    EXPECT_DOUBLE_EQ(with_style(DecayStyle::kCosine).at(update), 1.0);
  }
}

TEST(LearningRate, WithoutWarmUpStartsAtThePeak) {
  LearningRateSchedule schedule = with_style(DecayStyle::kLinear);
  schedule.warmup = 0;
  EXPECT_NEAR(schedule.at(1), 3.0 - 2.0 / 110, 1e-14);
}

}  // namespace
}  // namespace teratron
