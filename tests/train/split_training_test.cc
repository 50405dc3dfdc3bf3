// Which documents a run holds out, and that resuming keeps to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/message_of.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SplitTraining : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.train_iters = 4;
  }
  TrainConfig with(SplitOrder order, std::int64_t seed = 0) const {
    TrainConfig config = config_;
    config.split.order = order;
    config.split.seed = seed;
    return config;
  }
  TrainingRun begin(const TrainConfig& config) { return TrainingFixture::begin(config, 2); }
  bool has_record() const { return read_checkpoint_info(folder_ / "save").state.counters.contains("split_seed"); }
  std::string refusal(const TrainConfig& config) {
    return message_of<UserError>([&] { resume(config); });
  }
};

void expect_same_run(const TrainingRun& begun, const TrainingRun& resumed, const TrainingRun& whole) {
  expect_same_bits(begun.then(resumed), whole);
  EXPECT_EQ(resumed.result.validation_loss, whole.result.validation_loss);
}

TEST_F(SplitTraining, ACheckpointWithoutARecordResumesInFileOrderBitForBit) {
  const TrainingRun whole = train(with(SplitOrder::kFile));
  EXPECT_NE(train(with(SplitOrder::kAuto)).losses, whole.losses);
  const TrainingRun begun = begin(with(SplitOrder::kFile));
  EXPECT_FALSE(has_record());
  expect_same_run(begun, resume(with(SplitOrder::kAuto)), whole);
  expect_same_run(begun, resume(with(SplitOrder::kFile)), whole);
}

TEST_F(SplitTraining, ARandomSplitIsKeptToWithoutFlags) {
  for (const std::int64_t seed : {0, 7}) {
    const TrainingRun whole = train(with(SplitOrder::kAuto, seed));
    const TrainingRun begun = begin(with(SplitOrder::kAuto, seed));
    EXPECT_TRUE(has_record());
    expect_same_run(begun, resume(with(SplitOrder::kAuto)), whole);
    expect_same_run(begun, resume(with(SplitOrder::kRandom)), whole);
    expect_same_run(begun, resume(with(SplitOrder::kAuto, seed)), whole);
  }
}

TEST_F(SplitTraining, ResumingWithAnotherSplitIsRefused) {
  begin(with(SplitOrder::kRandom, 7));
  EXPECT_THAT(refusal(with(SplitOrder::kFile)),
              AllOf(HasSubstr("save' was trained with --split-order random --split-seed 7, and now --split-order file"),
                    HasSubstr("Leave out --split-order and --split-seed")));
  EXPECT_THAT(refusal(with(SplitOrder::kAuto, 8)), HasSubstr("random --split-seed 7, and now --split-seed 8 is given"));
  begin(with(SplitOrder::kFile));
  EXPECT_THAT(refusal(with(SplitOrder::kRandom)),
              HasSubstr("was trained with --split-order file, and now --split-order random is given"));
}

TEST_F(SplitTraining, TheSeedOfTheTrainingLeavesTheValidationPartAlone) {
  config_.train_iters = 1;
  const auto held_out = [&](std::int64_t seed) {
    TrainConfig config = with(SplitOrder::kRandom);
    config.seed = seed;
    const auto dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
    const TrainingTask task = make_training_task(config, dataset, kVocab);
    const std::int64_t samples = task.validation->samples_per_epoch();
    SampleBatch batch = task.validation->make_batch(samples);
    task.validation->read({0, samples}, batch, 0);
    return batch.targets;
  };
  EXPECT_THAT(held_out(1), ::testing::Not(IsEmpty()));
  EXPECT_EQ(held_out(1), held_out(2));
}

}  // namespace
}  // namespace teratron::testing
