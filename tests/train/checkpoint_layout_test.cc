// A checkpoint written under one layout goes on under any other, optimizer state included, as if nothing had happened.
#include <gtest/gtest.h>

#include "base/philox.h"
#include "checkpoint/reshard.h"
#include "train/training_fixture.h"

namespace teratron {
namespace {

class CheckpointLayout : public testing::TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.num_attention_heads = 4;
    config_.global_batch_size = 5;
    config_.train_iters = 8;
    config_.learning_rate.peak = 1e-4;
  }

  void draw_layout(TrainConfig& config, RandomSequence& random) {
    config.tensor_parallel = std::int64_t{1} << random.below(3);
    config.data_parallel = static_cast<std::int64_t>(1 + random.below(2));
    config.micro_batch_size = static_cast<std::int64_t>(1 + random.below(5));
    config.sequence_parallel = config.tensor_parallel > 1 && random.below(2) == 0;
    config.distributed_optimizer = random.below(2) == 0;
  }
  static std::string text_of(const TrainConfig& config) {
    return fmt::format("tp {}{} dp {}{} micro-batches of {}", config.tensor_parallel,
                       config.sequence_parallel ? " sequence-parallel" : "", config.data_parallel,
                       config.distributed_optimizer ? " sharded" : "", config.micro_batch_size);
  }
};

TEST_F(CheckpointLayout, AnyLayoutGoesOnFromAnyOther) {
  config_.micro_batch_size = 5;
  const testing::TrainingRun whole = train(config_);
  RandomSequence random(RandomStream{.seed = 21});
  for (int trial = 0; trial < 12; ++trial) {
    TrainConfig first = config_;
    draw_layout(first, random);
    first.train_iters = static_cast<std::int64_t>(1 + random.below(7));
    first.learning_rate.decay = config_.train_iters;
    first.save = folder_ / fmt::format("save-{}", trial);
    testing::TrainingRun both = train(first);

    TrainConfig rest = config_;
    draw_layout(rest, random);
    rest.load = first.save;
    if (trial % 3 == 2) {  // through files of another size
      rest.load = folder_ / fmt::format("resharded-{}", trial);
      reshard_checkpoint(first.save, rest.load, 4000);
    }
    const testing::TrainingRun after = train(rest);
    both.losses.insert(both.losses.end(), after.losses.begin(), after.losses.end());
    both.parameters = after.parameters;
    testing::expect_same_training(
        both, whole, fmt::format("{} updates with {}, then {}", first.train_iters, text_of(first), text_of(rest)));
  }
}

}  // namespace
}  // namespace teratron
