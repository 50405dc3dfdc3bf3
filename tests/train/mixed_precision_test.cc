// Training in bf16 and fp16 with fp32 masters: it learns as fp32 does, resumes bit for bit in any layout, and overflows
// and divergences are met as they should be.
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "base/error.h"
#include "base/message_of.h"
#include "train/plans/memory_plan.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MixedPrecision : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_attention_heads = 4;
    config_.optimizer.learning_rate.peak = 5e-3;
  }
  static TrainConfig with(TrainConfig config, bool bf16) {
    (bf16 ? config.backend.bf16 : config.backend.fp16) = true;
    config.optimizer.loss_scaling.initial = 1024;  // of no consequence to bf16
    return config;
  }
  static TrainConfig with_bf16_moments(TrainConfig config) {
    config.optimizer.bf16_moments = true;
    return config;
  }
  static TrainConfig piped(TrainConfig config) {
    config.pipeline.defer_weight_gradients = true;
    config.pipeline.token_slices = "7,5,4";
    return TrainingFixture::piped(config);
  }
};

// fp16's gradients are loss_scale times larger until they are reported. 11 bits of each value leave a norm of many
// more.
TEST_F(MixedPrecision, TheReportedNormOfGradientsIsThatOfTheLoss) {
  config_.train_iters = 1;
  const double exact = train(config_).reports.front().gradient_norm;
  for (const bool bf16 : {true, false}) {
    EXPECT_NEAR(train(with(config_, bf16)).reports.front().gradient_norm, exact, 0.02 * exact) << bf16;
  }
}

// bf16 has 8 bits, so a loss of 4 is known to 1e-2 at best; what training makes of it differs less.
TEST_F(MixedPrecision, LearnsWhatFp32Learns) {
  config_.train_iters = 60;
  const double exact = train(config_).losses.back();
  ASSERT_LT(exact, std::log(kVocab) - 0.5);
  for (const bool bf16 : {true, false}) {
    EXPECT_NEAR(train(with(config_, bf16)).losses.back(), exact, 0.02);
    EXPECT_NEAR(train(split(with(config_, bf16))).losses.back(), exact, 0.02);
    EXPECT_NEAR(train(piped(with(config_, bf16))).losses.back(), exact, 0.02);
  }
}

// Masters, moments, the loss scale and its counters are all in the checkpoint, whatever the layout that wrote it.
TEST_F(MixedPrecision, ResumesBitForBit) {
  config_.optimizer.loss_scaling.window = 3;  // the scale moves on both sides of the stop
  for (const TrainConfig& config :
       {with(config_, true), with(config_, false), split(with(config_, true)), split(with(config_, false)),
        split(config_), piped(with(config_, true)), piped(with(config_, false)), piped(config_),
        with_bf16_moments(config_), with_bf16_moments(split(with(config_, true))), with_bf16_moments(piped(config_))}) {
    TrainConfig scaled = config;
    scaled.optimizer.loss_scaling.window = 3;
    const TrainingRun whole = train(scaled), parts = train_in_two(scaled, 5);
    expect_same_bits(parts, whole);
    EXPECT_EQ(parts.reports.back().loss_scale, whole.reports.back().loss_scale);
  }
}

// Half of what fp32 moments take; the layout changes the rounding of no moment, only of what leads to it.
TEST_F(MixedPrecision, MomentsInBf16TrainAsThoseInFp32DoInHalfOfTheirMemory) {
  config_.train_iters = 60;
  const TrainingRun exact = train(config_), rounded = train(with_bf16_moments(config_));
  EXPECT_NEAR(rounded.losses.back(), exact.losses.back(), 0.02);
  EXPECT_NE(rounded.parameters, exact.parameters);
  for (const TrainConfig& layout : {split(config_), piped(config_)}) {
    EXPECT_NEAR(train(with_bf16_moments(layout)).losses.back(), rounded.losses.back(), 5e-3);
  }
  const auto bytes = [&](const TrainConfig& config) { return planned_memory(config, {.vocab_size = kVocab}).front(); };
  const std::int64_t parameters = config_.model.model_for(kVocab).parameters();
  const std::int64_t saved = bytes(config_) - bytes(with_bf16_moments(config_));
  EXPECT_GE(saved, 4 * parameters);
  EXPECT_LE(saved, 5 * parameters);  // padding is saved, too
}

// A checkpoint of either kind goes on as the other.
TEST_F(MixedPrecision, MomentsOfACheckpointAreTakenInEitherType) {
  for (const bool from_bf16 : {true, false}) {
    TrainConfig first = config_, rest = config_;
    first.optimizer.bf16_moments = from_bf16;
    rest.optimizer.bf16_moments = !from_bf16;
    begin(first, 5);
    EXPECT_NEAR(resume(rest).losses.back(), train(config_).losses.back(), 0.01);
  }
}

// The largest scale that a run bears, found by trying; twice that plants an overflow.
TEST_F(MixedPrecision, AnOverflowSkipsOneUpdateEverywhereAndHalvesTheScale) {
  TrainConfig config = with(config_, false);
  config.optimizer.loss_scaling.hysteresis = 1;
  config.train_iters = 6;
  const auto skips = [](const TrainingRun& run) {
    return std::ranges::count_if(run.reports, [](const IterationReport& report) { return report.skipped; });
  };
  config.optimizer.loss_scaling.initial = std::exp2(32);
  while (skips(train(config)) > 0) config.optimizer.loss_scaling.initial /= 2;
  const double bearable = config.optimizer.loss_scaling.initial;

  config.optimizer.loss_scaling.initial = 2 * bearable;
  const TrainingRun alone = train(config);
  for (const TrainConfig& layout : {config, split(config), piped(config)}) {
    const TrainingRun run = train(layout);
    EXPECT_EQ(skips(run), 1);
    std::int64_t applied = 0;
    for (std::size_t i = 0; i < run.reports.size(); ++i) {
      const IterationReport& report = run.reports[i];
      EXPECT_EQ(report.skipped, alone.reports[i].skipped) << i;
      EXPECT_EQ(report.loss_scale, applied == static_cast<std::int64_t>(i) ? 2 * bearable : bearable) << i;
      EXPECT_NEAR(run.losses[i], alone.losses[i], 2e-3) << i;
      // The schedule counts the updates that were applied.
      EXPECT_EQ(report.learning_rate, layout.schedule().at(applied + 1)) << i;
      if (!report.skipped) ++applied;
    }
  }
}

TEST_F(MixedPrecision, ASkippedUpdateLeavesTheWeightsAlone) {
  TrainConfig config = with(config_, false);
  config.optimizer.loss_scaling = {.fixed = std::exp2(60)};
  config.train_iters = 3;
  config.optimizer.learning_rate.peak = 1;
  const TrainingRun skipped = train(config);
  for (const IterationReport& report : skipped.reports) EXPECT_TRUE(report.skipped);
  config.train_iters = 1;
  EXPECT_EQ(train(config).parameters, skipped.parameters);
}

// An absurd learning rate: the second forward pass overflows.
TEST_F(MixedPrecision, ADivergenceSaysWhereItBegan) {
  TrainConfig config = with(config_, true);
  config.optimizer.learning_rate.peak = 1e38;
  config.optimizer.adamw.clip = 0;
  for (const TrainConfig& layout : {config, split(config), piped(config)}) {
    EXPECT_THAT(message_of<UserError>([&] { train(layout); }),
                AllOf(HasSubstr("diverged in iteration 2: the output of "), HasSubstr("(rank "),
                      HasSubstr("weights were not updated")));
  }
}

TEST_F(MixedPrecision, AScaleThatCannotFallFurtherIsADivergence) {
  TrainConfig config = with(config_, false);
  config.optimizer.loss_scaling = {.initial = std::exp2(42), .minimum = std::exp2(40), .hysteresis = 1};
  TrainConfig stages = config;
  stages.layout.pipeline_parallel = 2;
  const auto place = [&](const TrainConfig& layout, const char* rank) {
    try {
      train(layout);
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_THAT(text, AllOf(HasSubstr("diverged in iteration 3: the gradient of '"), HasSubstr(rank)));
      return text.substr(0, text.find(" (rank "));
    }
    return std::string("no error");
  };
  // Backward begins on the last stage.
  EXPECT_EQ(place(config, "(rank 0, "), place(stages, "(rank 1, "));
}

}  // namespace
}  // namespace teratron::testing
