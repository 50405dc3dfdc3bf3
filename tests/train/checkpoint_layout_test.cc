// A checkpoint written under one layout goes on under any other, optimizer state included, as if nothing had happened.
#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/philox.h"
#include "base/trials.h"
#include "checkpoint/native/reshard.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron {
namespace {

class CheckpointLayout : public testing::TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_attention_heads = 4;
    config_.model.config.num_layers = 4;
    config_.batch.global_batch_size = 5;
    config_.train_iters = 8;
    config_.optimizer.learning_rate.peak = 1e-4;
  }

  // Every file of the current checkpoint in `save` that holds tensors.
  static std::string tensors_in(const std::filesystem::path& save) {
    const std::filesystem::path folder = read_checkpoint_info(save).folder;
    return read_file(folder / "model.safetensors") + read_file(folder / "optimizer.safetensors");
  }

  // Loads one checkpoint and saves it again without an update.
  void load_and_save(TrainConfig config, const std::filesystem::path& from, const std::filesystem::path& to) {
    config.output.load = from;
    config.output.save = to;
    on_ranks(config, [](Trainer& trainer, Communicator&) {
      EXPECT_EQ(trainer.start(), 2);
      trainer.save();
    });
  }

  void expect_any_layout_goes_on(int trials) {
    config_.batch.micro_batch_size = 5;
    const testing::TrainingRun whole = train(config_);
    RandomSequence random(RandomStream{.seed = 21});
    for (int trial = 0; trial < testing::trials(trials); ++trial) {
      TrainConfig first = testing::random_pipeline(config_, random);
      if (trial % 6 == 5) {  // of a Llama, more tensor-parallel ranks than key heads
        first = config_;
        first.layout.tensor_parallel = 4;
      }
      first.train_iters = static_cast<std::int64_t>(1 + random.below(7));
      first.optimizer.learning_rate.decay = config_.train_iters;
      first.output.save = folder_ / fmt::format("save-{}", trial);
      testing::TrainingRun both = train(first);

      TrainConfig rest = testing::random_pipeline(config_, random);
      rest.output.load = first.output.save;
      if (trial % 3 == 2) {  // through files of another size
        rest.output.load = folder_ / fmt::format("resharded-{}", trial);
        reshard_checkpoint(first.output.save, rest.output.load, 4000);
      }
      const testing::TrainingRun after = train(rest);
      both.losses.insert(both.losses.end(), after.losses.begin(), after.losses.end());
      both.parameters = after.parameters;
      testing::expect_same_training(both, whole,
                                    fmt::format("{} updates with {}, then {}", first.train_iters,
                                                testing::text_of_layout(first), testing::text_of_layout(rest)));
    }
  }
};

TEST_F(CheckpointLayout, AnyLayoutGoesOnFromAnyOther) { expect_any_layout_goes_on(18); }

TEST_F(CheckpointLayout, AnyLayoutOfALlamaGoesOnFromAnyOther) {
  testing::become_llama(config_.model.config);
  expect_any_layout_goes_on(10);
}

// Masters, moments and weights: what a layout reads and writes again is what was there, to the last bit.
TEST_F(CheckpointLayout, NoLayoutChangesABitOfWhatItLoads) {
  RandomSequence random(RandomStream{.seed = 22});
  for (const auto& [bf16, optimizer] :
       {std::pair{false, OptimizerKind::kAdamW}, {true, OptimizerKind::kAdamW}, {true, OptimizerKind::kMuon}}) {
    config_.backend.bf16 = bf16;
    config_.optimizer.kind = optimizer;
    TrainConfig first = config_;
    first.train_iters = 2;
    first.optimizer.learning_rate.decay = config_.train_iters;
    first.output.save = folder_ / fmt::format("first-{}-{}", bf16, static_cast<int>(optimizer));
    train(first);
    const std::string expected = tensors_in(first.output.save);
    std::filesystem::path last = first.output.save;
    for (int trial = 0; trial < testing::trials(10); ++trial) {
      const TrainConfig layout = testing::random_pipeline(config_, random);
      const std::filesystem::path next =
          folder_ / fmt::format("again-{}-{}-{}", bf16, static_cast<int>(optimizer), trial);
      load_and_save(layout, last, next);
      ASSERT_EQ(tensors_in(next), expected) << testing::text_of_layout(layout) << (bf16 ? " bf16" : "");
      last = next;
    }
  }
}

TEST_F(CheckpointLayout, APipelineResumesBitForBit) {
  config_.model.config.hidden_dropout = config_.model.config.attention_dropout = 0.1;
  RandomSequence random(RandomStream{.seed = 23});
  for (int trial = 0; trial < testing::trials(8); ++trial) {
    const TrainConfig layout = testing::random_pipeline(config_, random);
    const testing::TrainingRun whole = train(layout);
    TrainConfig first = layout, rest = layout;
    first.train_iters = static_cast<std::int64_t>(1 + random.below(7));
    first.optimizer.learning_rate.decay = config_.train_iters;
    first.output.save = rest.output.load = folder_ / fmt::format("stopped-{}", trial);
    std::vector<double> losses = train(first).losses;
    const testing::TrainingRun after = train(rest);
    losses.insert(losses.end(), after.losses.begin(), after.losses.end());
    EXPECT_EQ(losses, whole.losses) << testing::text_of_layout(layout);
    EXPECT_EQ(after.parameters, whole.parameters) << testing::text_of_layout(layout);
  }
}

}  // namespace
}  // namespace teratron
