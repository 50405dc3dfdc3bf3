// What a run that diverges leaves behind: an error, and the last checkpoint whose loss was finite, in any precision and
// layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "base/trials.h"
#include "checkpoint/native/folders.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"
#include "train/watch/loss_watch.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DivergedRun : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_attention_heads = 4;
    config_.model.config.num_layers = 4;
    config_.optimizer.loss_scaling.initial = 1024;
  }
  // Weights of 1e30 are finite, and no forward pass with them is.
  static TrainConfig diverging(TrainConfig config) {
    config.optimizer.learning_rate.peak = 1e30;
    config.optimizer.learning_rate.minimum = 0;
    config.optimizer.adamw.clip = 0;
    return config;
  }
  static TrainConfig in_precision(TrainConfig config, int precision) {
    config.backend.bf16 = precision == 1;
    config.backend.fp16 = precision == 2;
    return config;
  }
  std::string error_of(const TrainConfig& config) {
    return message_of<UserError>([&] { train(config); });
  }
};

TEST_F(DivergedRun, KeepsTheLastCheckpointWhoseLossWasFinite) {
  RandomSequence random(RandomStream{.seed = 31});
  for (int trial = 0; trial < trials(12); ++trial) {
    TrainConfig good = in_precision(random_pipeline(config_, random), trial % 3);
    good.train_iters = 3;
    good.output.save = folder_ / fmt::format("run-{}", trial);
    good.output.save_interval = good.output.keep_last = 1;
    train(good);
    TrainConfig bad = diverging(good);
    bad.output.load = bad.output.save;
    bad.output.override_schedule = true;
    bad.train_iters = 9;
    const std::string layout = text_of_layout(bad);
    EXPECT_THAT(error_of(bad), AllOf(HasSubstr("diverged"), HasSubstr("--lr"))) << layout;
    EXPECT_THAT(iterations_in(bad.output.save), ElementsAre(3)) << layout;
    good.output.load = good.output.save;
    good.train_iters = 5;
    EXPECT_THAT(train(good).losses, SizeIs(2)) << layout;
  }
}

// An update of 1e38 and more is infinite; then it is the values themselves that no save takes.
TEST_F(DivergedRun, SavesNoInfiniteWeights) {
  for (const bool distributed : {false, true}) {
    TrainConfig config = diverging(config_);
    config.layout.data_parallel = 2;
    config.layout.distributed_optimizer = distributed;
    config.optimizer.learning_rate.peak = 1e300;
    config.output.save = folder_ / "run";
    config.output.save_interval = 1;
    on_ranks(config, [&](Trainer& trainer, Communicator&) {
      trainer.start();
      // Every rank ends with the same words.
      EXPECT_THROW(
          {
            TrainingObserver silent;
            trainer.run(silent);
          },
          UserError);
    });
    EXPECT_THAT(iterations_in(config.output.save), ElementsAre());
  }
}

TEST_F(DivergedRun, EndsWithAnErrorInFp16AsInFp32) {
  for (int precision = 0; precision < 3; ++precision) {
    EXPECT_THAT(error_of(in_precision(diverging(config_), precision)),
                AllOf(HasSubstr("diverged in iteration 2: the "), HasSubstr("(rank 0, its micro-batch 0)")))
        << precision;
  }
}

TEST_F(DivergedRun, AFixedScaleThatAlwaysOverflowsIsADivergence) {
  TrainConfig config = in_precision(config_, 2);
  config.optimizer.loss_scaling = {.fixed = std::exp2(60)};
  config.train_iters = LossScaler::kMostOverflows;
  EXPECT_EQ(error_of(config), kNoError);  // nothing was lost so far
  config.train_iters += 2;
  EXPECT_THAT(error_of(config), HasSubstr(fmt::format("diverged in iteration {}", LossScaler::kMostOverflows + 1)));
}

TEST_F(DivergedRun, TheLastUpdateIsNoException) {
  TrainConfig config = diverging(config_);
  config.train_iters = 1;
  config.optimizer.learning_rate.style = DecayStyle::kConstant;
  EXPECT_THAT(error_of(config), HasSubstr("the validation loss of the weights after iteration 1 is not finite"));
  config.split.weights = "1";  // no validation
  config.output.save = folder_ / "run";
  EXPECT_THAT(error_of(config), HasSubstr("the loss of the weights after iteration 1 is not finite"));
  EXPECT_THAT(iterations_in(config.output.save), ElementsAre());
}

TEST(LossWatch, ReportsAnExplosionOnceAndNoNoise) {
  RandomSequence random(RandomStream{.seed = 32});
  const auto noise = [&] { return 0.5 * static_cast<double>(random.below(1001)) / 1000 - 0.25; };
  for (int trial = 0; trial < 50; ++trial) {
    LossWatch watch;
    const double floor = 0.1 + 0.1 * static_cast<double>(random.below(40));
    const auto level = [&](int update) { return floor + 8 * std::exp(-update / 100.0); };
    int update = 0;
    for (; update < 400; ++update) ASSERT_FALSE(watch.explodes(level(update) + noise())) << update;
    for (int again = 0; again < 2; ++again) {
      EXPECT_TRUE(watch.explodes(2 * level(update) + 1.5 + noise()));
      for (int more = 0; more < 5; ++more) EXPECT_FALSE(watch.explodes(30 + noise()));
      for (const int end = update + 50; update < end; ++update) EXPECT_FALSE(watch.explodes(level(update) + noise()));
    }
  }
}

TEST(BestValidation, IsTheFirstOfTheLowest) {
  RandomSequence random(RandomStream{.seed = 33});
  BestValidation best;
  std::vector<double> all;
  for (std::int64_t at = 0; at < 200; ++at) {
    all.push_back(static_cast<double>(random.below(50)) - static_cast<double>(at) / 20);
    best.add(all.back(), at);
    const auto lowest = std::ranges::min_element(all) - all.begin();
    EXPECT_EQ(best.value, all[static_cast<std::size_t>(lowest)]);
    EXPECT_EQ(best.iteration, lowest);
    EXPECT_EQ(best.since, at - lowest);
  }
}

TEST(BestValidation, CountsRegularOnesAndTakesAny) {
  BestValidation best;
  best.add(3, 50);
  best.add(4, 100);
  best.add(4, 130, false);
  EXPECT_EQ(best.since, 1);
  best.add(2, 140, false);
  EXPECT_EQ(best.value, 2);
  EXPECT_EQ(best.iteration, 140);
  EXPECT_EQ(best.since, 0);
}

}  // namespace
}  // namespace teratron::testing
