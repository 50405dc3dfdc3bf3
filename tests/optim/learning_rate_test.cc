#include "optim/learning_rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace teratron::testing {
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

// Warm-up, stable, decay (MiniCPM, arXiv 2404.06395): each phase by its formula.
TEST(LearningRate, StaysAtThePeakOfWsdAndFallsOverTheLastUpdates) {
  const std::map<WsdDecayStyle, double (*)(double)> curves = {
      {WsdDecayStyle::kLinear, [](double r) { return 1 - r; }},
      {WsdDecayStyle::kCosine, [](double r) { return (1 + std::cos(std::numbers::pi * r)) / 2; }},
      {WsdDecayStyle::kExponential, [](double r) { return 2 * std::pow(0.5, r) - 1; }},
      {WsdDecayStyle::kMinusSqrt, [](double r) { return 1 - std::sqrt(r); }}};
  for (const auto& [style, remaining] : curves) {
    LearningRateSchedule schedule = with_style(DecayStyle::kWsd);
    schedule.wsd_decay = 40;
    schedule.wsd_style = style;
    for (std::int64_t update = 1; update <= 150; ++update) {
      const double done = std::min(1.0, static_cast<double>(update - 70) / 40);
      const double expected = update < 10    ? 0.3 * static_cast<double>(update)
                              : update <= 70 ? 3.0
                                             : 1.0 + 2.0 * remaining(done);
      EXPECT_NEAR(schedule.at(update), expected, 1e-14) << "update " << update << ", style " << static_cast<int>(style);
    }
  }
}

// All of a run's decay may be WSD's, which then begins where the warm-up ends.
TEST(LearningRate, FollowsTheDecayOfWsdWithoutAStablePhase) {
  LearningRateSchedule schedule = with_style(DecayStyle::kWsd);
  schedule.wsd_decay = 100;
  schedule.wsd_style = WsdDecayStyle::kCosine;
  for (std::int64_t update = 1; update <= 120; ++update) {
    EXPECT_DOUBLE_EQ(schedule.at(update), with_style(DecayStyle::kCosine).at(update));
  }
}

// As Megatron-LM's, which asks for the warm-up first.
TEST(LearningRate, AWarmUpOfTheWholeRunEndsAtThePeak) {
  LearningRateSchedule schedule = with_style(DecayStyle::kCosine);
  schedule.warmup = schedule.decay;
  EXPECT_DOUBLE_EQ(schedule.at(109), 3.0 * 109 / 110);
  EXPECT_DOUBLE_EQ(schedule.at(110), 3.0);
  EXPECT_DOUBLE_EQ(schedule.at(111), 1.0);
}

TEST(LearningRate, WithoutWarmUpStartsAtThePeak) {
  LearningRateSchedule schedule = with_style(DecayStyle::kLinear);
  schedule.warmup = 0;
  EXPECT_NEAR(schedule.at(1), 3.0 - 2.0 / 110, 1e-14);
}

}  // namespace
}  // namespace teratron::testing
