// Training with Muon: it learns, resumes to the bit, and changes layouts on the way.
#include <gtest/gtest.h>

#include "base/files/file.h"
#include "checkpoint/native/checkpoint.h"
#include "train/plans/memory_plan.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

class MuonTraining : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.optimizer.kind = OptimizerKind::kMuon;
    config_.model.config.num_attention_heads = 4;
    config_.batch.global_batch_size = 4;
  }
  static TrainConfig with_bf16(TrainConfig config, bool state) {
    config.backend.bf16 = true;
    config.optimizer.bf16_moments = state;
    return config;
  }
};

TEST_F(MuonTraining, ResumesBitForBit) {
  for (const TrainConfig& config : {config_, split(config_), piped(config_), with_bf16(split(config_), false),
                                    with_bf16(piped(config_), true), with_bf16(config_, true)}) {
    expect_same_bits(train_in_two(config, 5), train(config));
  }
}

TEST_F(MuonTraining, OneLayoutGoesOnFromAnother) {
  config_.optimizer.learning_rate.peak = 1e-4;
  const TrainingRun whole = train(config_);
  const std::vector<TrainConfig> layouts = {config_, split(config_), piped(config_)};
  for (const TrainConfig& from : layouts) {
    const TrainingRun begun = begin(from, 4);
    for (const TrainConfig& to : layouts) expect_same_training(begun.then(resume(to)), whole, "Muon");
  }
}

// A checkpoint has a momentum for each matrix of the layers and two moments for each other parameter.
TEST_F(MuonTraining, CheckpointsHoldWhatTheOptimizerSaysThatItKeeps) {
  config_.train_iters = 1;
  config_.output.save = folder_ / "save";
  train(config_);
  const std::string header = read_file(read_checkpoint_info(config_.output.save).folder / "optimizer.safetensors");
  for (const char* there : {"layers.0.attention.qkv.weight.momentum", "layers.1.mlp.down.weight.momentum",
                            "layers.0.attention.qkv.bias.moment1", "embedding.tokens.weight.moment2"}) {
    EXPECT_NE(header.find(there), std::string::npos) << there;
  }
  EXPECT_EQ(header.find("mlp.up.weight.moment1"), std::string::npos);
}

// A momentum less than AdamW's two for each element of the layers' matrices; the update works where activations were.
TEST_F(MuonTraining, TakesLessMemoryThanAdamW) {
  config_.batch.micro_batch_size = config_.batch.global_batch_size = 16;
  TrainConfig adamw = config_;
  adamw.optimizer.kind = OptimizerKind::kAdamW;
  const auto bytes = [&](const TrainConfig& config) { return planned_memory(config, {.vocab_size = kVocab}).front(); };
  const std::int64_t matrices =
      config_.model.config.num_layers * 12 * config_.model.config.hidden_size * config_.model.config.hidden_size;
  EXPECT_NEAR(static_cast<double>(bytes(adamw) - bytes(config_)), static_cast<double>(4 * matrices),
              0.03 * static_cast<double>(bytes(config_)));
}

TEST_F(MuonTraining, LearnsFasterThanAdamWOnTheSameTokens) {
  config_.train_iters = 40;
  TrainConfig adamw = config_;
  adamw.optimizer.kind = OptimizerKind::kAdamW;
  EXPECT_LT(train(config_).losses.back(), train(adamw).losses.back());
}

}  // namespace
}  // namespace teratron::testing
