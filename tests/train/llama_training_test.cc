// What training promises of GPT-2, of a model of a later family: the same bits again, in threads of any number and
// after a resume, and checkpoints that any layout goes on from.
#include <gtest/gtest.h>

#include "base/host/threads.h"
#include "base/philox.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron {
namespace {

class LlamaTraining : public testing::TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_attention_heads = 4;
    config_.model.config.num_layers = 4;
    testing::become_llama(config_.model.config);
    config_.batch.global_batch_size = 5;
    config_.train_iters = 6;
    config_.optimizer.learning_rate.peak = 1e-4;
  }
};

TEST_F(LlamaTraining, LearnsInFp32AndInBf16) {
  config_.optimizer.learning_rate.peak = 1e-2;
  config_.train_iters = 40;
  for (const bool bf16 : {false, true}) {
    config_.backend.bf16 = bf16;
    const testing::TrainingRun run = train(config_);
    EXPECT_LT(run.losses.back(), 0.8 * run.losses.front()) << (bf16 ? "bf16" : "fp32");
  }
}

TEST_F(LlamaTraining, AnyNumberOfThreadsHasTheSameBitsAndResumesWithThem) {
  const int threads = thread_count();
  for (const bool bf16 : {false, true}) {
    config_.backend.bf16 = bf16;
    set_thread_count(1);
    const testing::TrainingRun whole = train(config_);
    set_thread_count(3);
    TrainConfig first = config_, rest = config_;
    first.train_iters = 2;
    first.optimizer.learning_rate.decay = config_.train_iters;
    first.output.save = rest.output.load = folder_ / (bf16 ? "bf16" : "fp32");
    std::vector<double> losses = train(first).losses;
    const testing::TrainingRun after = train(rest);
    set_thread_count(threads);
    losses.insert(losses.end(), after.losses.begin(), after.losses.end());
    EXPECT_EQ(losses, whole.losses);
    EXPECT_EQ(after.parameters, whole.parameters);
  }
}

// More tensor-parallel ranks than key heads among them.
TEST_F(LlamaTraining, AnyLayoutGoesOnFromAnyOther) {
  config_.batch.micro_batch_size = 5;
  const testing::TrainingRun whole = train(config_);
  RandomSequence random(RandomStream{.seed = 31});
  for (int trial = 0; trial < 10; ++trial) {
    TrainConfig first = testing::random_pipeline(config_, random);
    if (trial % 3 == 0) {
      first = config_;
      first.layout.tensor_parallel = 4;
    }
    first.train_iters = static_cast<std::int64_t>(1 + random.below(5));
    first.optimizer.learning_rate.decay = config_.train_iters;
    first.output.save = folder_ / fmt::format("save-{}", trial);
    testing::TrainingRun both = train(first);
    TrainConfig rest = testing::random_pipeline(config_, random);
    rest.output.load = first.output.save;
    const testing::TrainingRun after = train(rest);
    both.losses.insert(both.losses.end(), after.losses.begin(), after.losses.end());
    both.parameters = after.parameters;
    testing::expect_same_training(both, whole,
                                  fmt::format("{} updates with {}, then {}", first.train_iters,
                                              testing::text_of_layout(first), testing::text_of_layout(rest)));
  }
}

}  // namespace
}  // namespace teratron
