// A checkpoint written under one layout goes on under any other, optimizer state included, as if nothing had happened.
#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/philox.h"
#include "base/trials.h"
#include "checkpoint/native/reshard.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

class CheckpointLayout : public TrainingFixture {
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

  void expect_any_layout_goes_on(int count) {
    config_.batch.micro_batch_size = 5;
    const TrainingRun whole = train(config_);
    RandomSequence random(RandomStream{.seed = 21});
    for (int trial = 0; trial < trials(count); ++trial) {
      TrainConfig first = random_pipeline(config_, random);
      if (trial % 6 == 5) {  // of a Llama, more tensor-parallel ranks than key heads
        first = config_;
        first.layout.tensor_parallel = 4;
      }
      const auto updates = static_cast<std::int64_t>(1 + random.below(7));
      const TrainingRun begun = begin(first, updates);
      TrainConfig rest = random_pipeline(config_, random);
      rest.output.load = folder_ / "save";
      if (trial % 3 == 2) {  // through files of another size
        rest.output.load = folder_ / fmt::format("resharded-{}", trial);
        reshard_checkpoint(folder_ / "save", rest.output.load, 4000);
      }
      expect_same_training(
          begun.then(train(rest)), whole,
          fmt::format("{} updates with {}, then {}", updates, text_of_layout(first), text_of_layout(rest)));
    }
  }
};

TEST_F(CheckpointLayout, AnyLayoutGoesOnFromAnyOther) { expect_any_layout_goes_on(18); }

TEST_F(CheckpointLayout, AnyLayoutOfALlamaGoesOnFromAnyOther) {
  become_llama(config_.model.config);
  expect_any_layout_goes_on(10);
}

// Masters, moments and weights: what a layout reads and writes again is what was there, to the last bit.
TEST_F(CheckpointLayout, NoLayoutChangesABitOfWhatItLoads) {
  RandomSequence random(RandomStream{.seed = 22});
  for (const auto& [bf16, optimizer] :
       {std::pair{false, OptimizerKind::kAdamW}, {true, OptimizerKind::kAdamW}, {true, OptimizerKind::kMuon}}) {
    config_.backend.bf16 = bf16;
    config_.optimizer.kind = optimizer;
    begin(config_, 2);
    std::filesystem::path last = folder_ / "save";
    const std::string expected = tensors_in(last);
    for (int trial = 0; trial < trials(10); ++trial) {
      const TrainConfig layout = random_pipeline(config_, random);
      const std::filesystem::path next =
          folder_ / fmt::format("again-{}-{}-{}", bf16, static_cast<int>(optimizer), trial);
      load_and_save(layout, last, next);
      ASSERT_EQ(tensors_in(next), expected) << text_of_layout(layout) << (bf16 ? " bf16" : "");
      last = next;
    }
  }
}

TEST_F(CheckpointLayout, APipelineResumesBitForBit) {
  config_.model.config.hidden_dropout = config_.model.config.attention_dropout = 0.1;
  RandomSequence random(RandomStream{.seed = 23});
  for (int trial = 0; trial < trials(8); ++trial) {
    const TrainConfig layout = random_pipeline(config_, random);
    const TrainingRun whole = train(layout);
    const auto updates = static_cast<std::int64_t>(1 + random.below(7));
    expect_same_bits(train_in_two(layout, updates), whole, text_of_layout(layout));
  }
}

}  // namespace
}  // namespace teratron::testing
