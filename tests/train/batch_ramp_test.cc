// Training with a batch that grows: the samples consumed follow the rule, and a run stopped in the middle of the ramp
// goes on bit for bit.
#include <gtest/gtest.h>

#include "base/error.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

class BatchRampTest : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.batch.rampup_batch_size = {2, 2, 20};  // to 8, in three parts of 20/3 samples
    config_.batch.global_batch_size = 8;
    config_.batch.micro_batch_size = 2;
    config_.layout.data_parallel = 2;
    config_.train_iters = 10;
    config_.optimizer.learning_rate.peak = 1e-4;
  }
};

TEST_F(BatchRampTest, ConsumedSamplesFollowTheRule) {
  const TrainingRun run = train(config_);
  std::vector<std::int64_t> sizes, consumed;
  for (const IterationReport& report : run.reports) {
    sizes.push_back(report.global_batch_size);
    consumed.push_back(report.consumed_samples);
    EXPECT_EQ(report.consumed_tokens, report.consumed_samples * config_.model.seq_length);
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{2, 2, 2, 2, 4, 4, 6, 8, 8, 8}));
  EXPECT_EQ(consumed, (std::vector<std::int64_t>{2, 4, 6, 8, 12, 16, 22, 30, 38, 46}));
}

TEST_F(BatchRampTest, ARunStoppedInTheMiddleOfTheRampGoesOnBitForBit) {
  const TrainingRun whole = train(config_);
  for (const std::int64_t stop : {3, 5, 7}) {
    expect_same_bits(train_in_two(config_, stop), whole, fmt::format("stopped after {}", stop));
  }
}

TEST_F(BatchRampTest, EveryLayoutTrainsAlike) {
  const TrainingRun two = train(config_);
  config_.layout.data_parallel = 1;
  config_.batch.micro_batch_size = 8;
  expect_same_training(two, train(config_), "dp 2 in micro-batches of 2");
}

}  // namespace
}  // namespace teratron::testing
