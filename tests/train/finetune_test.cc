// Runs that start from weights: a checkpoint of any layout, or a folder that Hugging Face's transformers wrote.
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "base/error.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/initial_weights.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kGpt2Tiny = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/gpt2_tiny";

class Finetune : public TrainingFixture {
 protected:
  // The weights that a run begins with, and the iteration that it counts from.
  std::vector<double> weights_at_start(const TrainConfig& config) {
    WholeWeights weights;
    on_ranks(config, [&](Trainer& trainer, Communicator&) {
      EXPECT_EQ(trainer.start(), 0);
      weights.add(trainer.executor());
    });
    return weights.values();
  }
  // Two layers and three heads allow these; drawn so that every kind of split comes.
  static TrainConfig under_layout(TrainConfig config, RandomSequence& random) {
    config.layout.tensor_parallel = random.below(2) == 0 ? 1 : config.model.config.num_attention_heads;
    config.layout.pipeline_parallel = 1 + static_cast<std::int64_t>(random.below(2));
    config.layout.data_parallel = 1 + static_cast<std::int64_t>(random.below(2));
    config.layout.distributed_optimizer = config.layout.data_parallel > 1 && random.below(2) == 0;
    config.backend.bf16 = random.below(3) == 0;
    return config;
  }
};

TEST_F(Finetune, TakesTheWeightsOfACheckpointUnderAnyLayoutAndNothingElse) {
  RandomSequence random(RandomStream{.seed = 11});
  config_.train_iters = 3;
  config_.output.save = folder_ / "source";
  TrainConfig source = under_layout(config_, random);
  source.backend.bf16 = false;
  const TrainingRun trained = train(source);
  TrainConfig tuned = config_;
  tuned.output.save.clear();
  tuned.output.finetune = folder_ / "source";
  tuned.seed = 99;  // as a new run may
  tuned.split.weights = "4,1";
  const TrainingRun alone = train(tuned);
  EXPECT_EQ(alone.reports.front().iteration, 1);
  EXPECT_EQ(alone.reports.front().consumed_samples, 4);
  EXPECT_EQ(alone.reports.front().learning_rate, tuned.schedule().at(1));
  for (int trial = 0; trial < 8; ++trial) {
    const TrainConfig config = under_layout(tuned, random);
    SCOPED_TRACE(fmt::format("tp {} pp {} dp {} sharded {} bf16 {}", config.layout.tensor_parallel,
                             config.layout.pipeline_parallel, config.layout.data_parallel,
                             config.layout.distributed_optimizer, config.backend.bf16));
    const std::vector<double> weights = weights_at_start(config);
    ASSERT_EQ(weights.size(), trained.parameters.size());
    // Masters hold fp32; the value of a bf16 run is rounded to 8 bits of mantissa.
    const double tolerance = config.backend.bf16 ? 1.0 / 256 : 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ASSERT_NEAR(weights[i], trained.parameters[i], tolerance * std::abs(trained.parameters[i])) << i;
    }
    if (!config.backend.bf16) expect_same_training(train(config), alone, "layout");
  }
}

// An Adam that went on with the source's moments would move otherwise.
TEST_F(Finetune, BeginsWithAFreshOptimizer) {
  config_.train_iters = 3;
  config_.output.save = folder_ / "source";
  train(config_);
  TrainConfig tuned = config_;
  tuned.output.save = folder_ / "tuned";
  tuned.output.finetune = folder_ / "source";
  tuned.train_iters = 1;
  tuned.optimizer.adamw.weight_decay = 0;
  tuned.optimizer.learning_rate.style = DecayStyle::kConstant;
  const std::vector<double> before = weights_at_start(tuned), after = train(tuned).parameters;
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) largest = std::max(largest, std::abs(after[i] - before[i]));
  // The first step of Adam is the learning rate wherever there is a gradient.
  EXPECT_NEAR(largest, tuned.optimizer.learning_rate.peak, 1e-3 * tuned.optimizer.learning_rate.peak);
}

TEST_F(Finetune, AHuggingFaceFolderIsReadAsItsConversionIs) {
  import_from_hugging_face(kGpt2Tiny, folder_ / "converted");
  const WeightSource source = find_weights(kGpt2Tiny);
  EXPECT_TRUE(source.is_hugging_face);
  RandomSequence random(RandomStream{.seed = 12});
  config_.model.config = source.model;
  config_.train_iters = 3;
  TrainConfig converted = config_;
  converted.output.finetune = folder_ / "converted";
  const std::vector<double> expected = weights_at_start(converted);
  for (int trial = 0; trial < 8; ++trial) {
    TrainConfig config = under_layout(config_, random);
    config.backend.bf16 = false;
    config.output.finetune = kGpt2Tiny;
    EXPECT_EQ(weights_at_start(config), expected) << config.layout.tensor_parallel << config.layout.pipeline_parallel;
  }
}

TEST_F(Finetune, AnotherShapeIsRefusedByName) {
  config_.train_iters = 1;
  config_.model.config = find_weights(kGpt2Tiny).model;
  config_.output.finetune = kGpt2Tiny;
  config_.model.config.hidden_size = 64;
  EXPECT_THAT(message_of<UserError>([&] { train(config_); }),
              ::testing::HasSubstr("hidden_size is 32 there, 64 was asked for"));
}

}  // namespace
}  // namespace teratron::testing
