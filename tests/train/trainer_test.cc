// Training runs, end to end on the CPU back end: the same run twice, stopped and resumed, cut into other micro-batches,
// under guarded memory, and against ten steps of PyTorch on Hugging Face's GPT-2.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/host/threads.h"
#include "data/samples/gpt_samples.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

using TrainerTest = TrainingFixture;

TEST_F(TrainerTest, SameRunTwiceHasTheSameBits) {
  const TrainingRun first = train(config_), second = train(config_);
  expect_same_bits(first, second);
  EXPECT_EQ(first.result.validation_loss, second.result.validation_loss);
}

TEST_F(TrainerTest, LearnsAndAnotherSeedIsAnotherRun) {
  config_.train_iters = 120;
  const TrainingRun run = train(config_);
  EXPECT_NEAR(run.losses.front(), std::log(kVocab), 0.2);
  EXPECT_LT(run.losses.back(), run.losses.front() - 1);
  EXPECT_LT(run.result.validation_loss.value_or(9), run.losses.front() - 0.8);
  config_.seed = 99;
  config_.train_iters = 1;
  EXPECT_NE(train(config_).losses.front(), run.losses.front());
}

// Its loss is a mean over nothing.
TEST_F(TrainerTest, AnUpdateWithoutTargetsChangesNoWeights) {
  constexpr std::int32_t kEnd = 3;
  IndexedDatasetWriter writer(folder_ / "ends", kVocab);
  writer.add_document(std::vector<std::int32_t>(100, kEnd));
  writer.commit();
  const auto ends = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "ends"));
  const auto samples = [&] {
    return std::make_unique<GptSamples>(ends, split_corpus(*ends, std::vector<double>{1}, kFileOrder).front(),
                                        config_.model.seq_length, SampleOrder::kSequential, 0,
                                        DocumentOptions{.eod_mask_loss = true, .end_token = kEnd});
  };
  config_.optimizer.adamw.weight_decay = 0;
  config_.train_iters = 2;
  const auto backend = make_cpu_backend();
  const auto corpus = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
  TrainingTask task = make_training_task(config_, corpus, kVocab);
  task.training = samples();
  task.validation = samples();
  Trainer trainer(config_, *backend, std::move(task));
  trainer.start();
  const auto weights = [&] {
    WholeWeights whole;
    whole.add(trainer.executor());
    return whole.values();
  };
  const std::vector<double> before = weights();
  TrainingObserver silent;
  const TrainingResult result = trainer.run(silent);
  EXPECT_EQ(result.final_loss, 0);
  EXPECT_EQ(result.validation_loss, 0);
  EXPECT_EQ(weights(), before);
}

TEST_F(TrainerTest, ResumedRunHasTheBitsOfTheUninterruptedOne) {
  const TrainingRun whole = train(config_);
  for (const std::int64_t stop : {1, 5}) {
    expect_same_bits(train_in_two(config_, stop), whole);
  }
}

TEST_F(TrainerTest, MicroBatchSizeChangesNothingButRounding) {
  const TrainingRun two = train(config_);
  for (const std::int64_t size : {1, 4}) {
    config_.batch.micro_batch_size = size;
    const TrainingRun other = train(config_);
    // fp32 sums in another order, through eight updates of a small model: the promise is 1e-5 relative.
    for (std::size_t i = 0; i < two.losses.size(); ++i) EXPECT_NEAR(other.losses[i], two.losses[i], 3e-5) << i;
  }
}

TEST_F(TrainerTest, OnlyOperationsTouchTensorMemory) {
  const TrainingRun open = train(config_);
  config_.backend.guard_memory = true;
  config_.output.save = folder_ / "guarded";
  const TrainingRun guarded = train(config_);
  expect_same_bits(open, guarded);
}

// Shapes that every kernel cuts in several ways: rows that are no multiple of a block, a product long enough to be cut
// along its depth, dropout, weight decay and the norm of all gradients.
TEST_F(TrainerTest, AnyNumberOfThreadsHasTheSameBits) {
  config_.model.config.hidden_size = 72;
  config_.model.seq_length = 140;
  config_.batch.micro_batch_size = 3;
  config_.batch.global_batch_size = 5;
  config_.model.config.hidden_dropout = config_.model.config.attention_dropout = 0.1;
  config_.optimizer.adamw.clip = 0.5;
  config_.logits_chunk = 130;
  config_.train_iters = 4;
  const int threads = thread_count();
  for (const bool bf16 : {false, true}) {
    config_.backend.bf16 = bf16;
    set_thread_count(1);
    const TrainingRun one = train(config_);
    for (const int more : {2, 3, 4, 7}) {
      set_thread_count(more);
      const TrainingRun other = train(config_);
      expect_same_bits(other, one, fmt::format("{} threads", more));
      EXPECT_EQ(other.validations, one.validations) << more << " threads";
    }
  }
  set_thread_count(threads);
}

TEST_F(TrainerTest, TheFinalLossIsThatOfTheLastUpdateAndARunWithoutUpdatesHasNone) {
  config_.train_iters = 2;
  config_.output.save = folder_ / "save";
  const TrainingRun run = train(config_);
  EXPECT_EQ(run.result.final_loss, run.losses.back());
  config_.output.load = config_.output.save;
  const TrainingRun again = train(config_);
  EXPECT_EQ(again.result.final_loss, std::nullopt);
  EXPECT_EQ(again.result.iterations, 2);
}

TEST_F(TrainerTest, WrongResumesAreRefused) {
  config_.output.save = folder_ / "save";
  train(config_);
  TrainConfig other = config_;
  other.output.load = config_.output.save;
  other.output.save.clear();
  other.train_iters = 12;
  other.model.config.hidden_size = 48;
  EXPECT_THROW(train(other), UserError);
  other.output.load = folder_ / "nowhere";
  EXPECT_THROW(train(other), UserError);  // never a silent start from random weights
}

TEST_F(TrainerTest, DivergenceIsNamedAndNothingIsSaved) {
  config_.optimizer.learning_rate.peak = 1e30;
  config_.optimizer.adamw.clip = 0;
  config_.output.save = folder_ / "diverged";
  try {
    train(config_);
    FAIL() << "a learning rate of 1e30 must diverge";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("--lr"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(config_.output.save / "latest_checkpointed_iteration.txt"));
}

}  // namespace
}  // namespace teratron::testing
