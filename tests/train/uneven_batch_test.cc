// A global batch that neither the ranks nor the micro-batches divide trains as it does on one rank in one piece.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/philox.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

class UnevenBatch : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.hidden_dropout = config_.model.config.attention_dropout = 0.1;
    // AdamW divides by the root of the second moments, of which those that are zero but for rounding are no layout's
    // to reproduce; a rate as in training keeps what they move small.
    config_.optimizer.learning_rate.peak = 1e-4;
    config_.model.config.num_attention_heads = 4;
    config_.train_iters = 6;
  }
  TrainingRun alone() {
    TrainConfig config = config_;
    config.layout.tensor_parallel = config.layout.data_parallel = 1;
    config.batch.micro_batch_size = config.batch.global_batch_size;
    return train(config);
  }
};

TEST_F(UnevenBatch, TrainsAsOneRankWithOneMicroBatchDoes) {
  RandomSequence random(RandomStream{.seed = 8});
  for (const std::int64_t size : {5, 7, 11}) {
    config_.batch.global_batch_size = size;
    const TrainingRun expected = alone();
    for (int trial = 0; trial < 4; ++trial) {
      config_.layout.tensor_parallel = std::int64_t{1} << random.below(2);
      config_.layout.data_parallel = static_cast<std::int64_t>(1 + random.below(3));
      config_.batch.micro_batch_size = static_cast<std::int64_t>(1 + random.below(4));
      expect_same_training(
          train(config_), expected,
          fmt::format("batch {}, tp {}, dp {}, micro-batches of {}", size, config_.layout.tensor_parallel,
                      config_.layout.data_parallel, config_.batch.micro_batch_size));
    }
  }
}

TEST_F(UnevenBatch, EveryRankPlansForTheLargestShare) {
  config_.batch.global_batch_size = 5;
  config_.batch.micro_batch_size = 2;
  config_.layout.data_parallel = 2;  // shares of 2 and 3: one micro-batch, and two
  const std::vector<double> plans = train(config_).plans;
  EXPECT_EQ(plans[0], plans[1]);
}

TEST_F(UnevenBatch, AMicroBatchLargerThanAnyShareTakesNoMemory) {
  config_.batch.micro_batch_size = 4;
  const TrainingRun exact = train(config_);
  config_.batch.micro_batch_size = 400;
  const TrainingRun wide = train(config_);
  EXPECT_EQ(wide.plans, exact.plans);
  EXPECT_EQ(wide.losses, exact.losses);
}

// The command line refuses it for a batch that is given; a task's data may have no more.
TEST_F(UnevenBatch, TrainsTheSameWhereSomeCopiesHaveNoSample) {
  config_.batch.global_batch_size = 2;
  const TrainingRun expected = alone();
  config_.batch.micro_batch_size = 1;
  for (const std::int64_t copies : {3, 5}) {
    config_.layout.data_parallel = copies;
    expect_same_training(train(config_), expected, fmt::format("dp {}", copies));
  }
}

}  // namespace
}  // namespace teratron::testing
