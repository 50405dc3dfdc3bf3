// Whatever pipeline a configuration asks for, it trains, validates and tells of divergences as one rank does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/message_of.h"
#include "base/trials.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PipelineTraining : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_layers = 5;
    config_.model.config.hidden_size = 16;
    config_.model.config.num_attention_heads = 2;
    config_.model.config.hidden_dropout = config_.model.config.attention_dropout = 0.1;
    config_.batch.global_batch_size = 7;
    config_.train_iters = 4;
    config_.output.eval_interval = 2;
    config_.optimizer.learning_rate.peak = 1e-4;
  }

  // The error of a training in which one weight of `layer` is not finite from the start.
  std::string error_of(const TrainConfig& config, std::int64_t layer) {
    return message_of<UserError>([&] {
      on_ranks(config, [&](Trainer& trainer, Communicator&) {
        trainer.start();
        for (const Parameter* parameter : trainer.executor().parameters()) {
          if (parameter->name != fmt::format("layers.{}.mlp.down.bias", layer)) continue;
          trainer.executor().backend().fill(parameter->value, std::numeric_limits<double>::infinity());
        }
        TrainingObserver silent;
        trainer.run(silent);
      });
    });
  }
};

TEST_F(PipelineTraining, TrainsAndValidatesAsOneRankDoesOverRandomPipelines) {
  TrainConfig alone = config_;
  alone.batch.micro_batch_size = config_.batch.global_batch_size;
  const TrainingRun expected = train(alone);
  ASSERT_EQ(expected.validations.size(), 2U);
  RandomSequence random(RandomStream{.seed = 31});
  for (int trial = 0; trial < trials(is_fast_set() ? 20 : 40); ++trial) {
    const TrainConfig config = random_pipeline(config_, random);
    const std::string what = fmt::format("trial {}: {}", trial, text_of_layout(config));
    ASSERT_THAT(config.faults(), IsEmpty()) << what;
    const TrainingRun run = train(config);
    expect_same_training(run, expected, what);
    for (std::size_t i = 0; i < expected.validations.size(); ++i) {
      EXPECT_NEAR(run.validations[i], expected.validations[i], 1e-5 * expected.validations[i]) << what;
    }
    if (HasFailure()) return;
  }
}

// Copies of the model with different numbers of micro-batches, and a batch that grows.
TEST_F(PipelineTraining, ARampIsTheSameInAPipeline) {
  config_.batch.rampup_batch_size = {2, 2, 14};
  config_.batch.global_batch_size = 8;
  config_.train_iters = 6;
  const TrainingRun expected = train(config_);
  config_.layout.pipeline_parallel = 3;
  config_.layout.data_parallel = 2;
  config_.pipeline.layout = "1,2,2";
  config_.batch.micro_batch_size = 1;
  expect_same_training(train(config_), expected, "1f1b");
  config_.pipeline.token_slices = "uniform:3";
  expect_same_training(train(config_), expected, "seq1f1b");
  config_.pipeline.token_slices = "auto";
  const slicing::CostModel forward{.lengths = {1, 4, 8, 16}, .without_context = {2, 3, 5, 9}};
  profile_ = {.stages = {3, {.forward = forward, .backward = forward.times(2)}}};
  profile_->key.stages = 3;
  ASSERT_GE(plan_pipeline(config_, &*profile_).slices_of(0).size(), 2U);
  expect_same_training(train(config_), expected, "slices of a profile");
  profile_.reset();
  config_.pipeline.token_slices = "";
  config_.pipeline.schedule = pipeline::ScheduleKind::kInterleaved;
  config_.pipeline.defer_weight_gradients = true;
  expect_same_training(train(config_), expected, "interleaved");
}

TEST_F(PipelineTraining, ADivergenceIsOfTheLayerAndRankWhereItBegan) {
  config_.layout.pipeline_parallel = 2;
  config_.layout.tensor_parallel = 2;
  config_.pipeline.layout = "3,2";
  for (const auto& [layer, rank] : {std::pair{0, 0}, {2, 0}, {3, 2}, {4, 2}}) {
    EXPECT_THAT(
        error_of(config_, layer),
        HasSubstr(fmt::format("iteration 1: the output of layer {} (rank {}, its micro-batch 0)", layer, rank)));
  }
  // Where cells take turns, a later layer lies on an earlier rank.
  config_.layout.tensor_parallel = 1;
  config_.pipeline.schedule = pipeline::ScheduleKind::kInterleaved;
  config_.pipeline.virtual_stages = 2;
  config_.pipeline.layout = "1,1,2,1";
  for (const auto& [layer, rank] : {std::pair{0, 0}, {1, 1}, {2, 0}, {3, 0}, {4, 1}}) {
    EXPECT_THAT(
        error_of(config_, layer),
        HasSubstr(fmt::format("iteration 1: the output of layer {} (rank {}, its micro-batch 0)", layer, rank)));
  }
}

}  // namespace
}  // namespace teratron::testing
