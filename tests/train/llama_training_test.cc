// What training promises of GPT-2, of a model of a later family: the same bits again, in threads of any number and
// after a resume, and checkpoints that any layout goes on from.
#include <gtest/gtest.h>

#include "base/host/threads.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

class LlamaTraining : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_attention_heads = 4;
    config_.model.config.num_layers = 4;
    become_llama(config_.model.config);
    config_.batch.global_batch_size = 5;
    config_.train_iters = 6;
    config_.optimizer.learning_rate.peak = 1e-4;
  }
};

TEST_F(LlamaTraining, LearnsInEveryPrecision) {
  config_.optimizer.learning_rate.peak = 1e-2;
  config_.train_iters = 40;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    config_.backend.bf16 = precision == std::string("bf16");
    config_.backend.fp16 = precision == std::string("fp16");
    const TrainingRun run = train(config_);
    EXPECT_LT(run.losses.back(), 0.8 * run.losses.front()) << precision;
  }
}

TEST_F(LlamaTraining, AnyNumberOfThreadsHasTheSameBitsAndResumesWithThem) {
  const int threads = thread_count();
  for (const bool bf16 : {false, true}) {
    config_.backend.bf16 = bf16;
    set_thread_count(1);
    const TrainingRun whole = train(config_);
    set_thread_count(3);
    expect_same_bits(train_in_two(config_, 2), whole, bf16 ? "bf16" : "fp32");
    set_thread_count(threads);
  }
}

}  // namespace
}  // namespace teratron::testing
