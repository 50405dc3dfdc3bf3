// The ways to cut a batch that take turns in a run's first updates, and what is kept of them.
#include "train/slice_trial.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "pipeline/token_slices.h"
#include "train/training_fixture.h"

namespace teratron {
namespace {

using ::testing::IsEmpty;

TEST(SliceTrial, GoesOnWithTheLeastMedianWhateverDisturbsAFewUpdates) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 50; ++trial) {
    const std::size_t ways = 2 + random.below(4), fastest = random.below(ways);
    SliceTrial slices(ways);
    std::vector<std::size_t> turns(ways, 0);
    std::size_t updates = 0;
    for (; slices.is_open(); ++updates) {
      const std::size_t way = slices.way();
      ASSERT_LT(way, ways);
      const bool is_warm_up = turns[way]++ == 0, is_disturbed = turns[way] % 5 == 2;
      const double usual = way == fastest ? 1 : 1.1;
      slices.add(is_warm_up ? 1 - usual / 2 : is_disturbed ? 3 : usual + 0.01 * random.uniform());
    }
    EXPECT_EQ(updates, ways * SliceTrial::kRounds);
    EXPECT_THAT(turns, ::testing::Each(SliceTrial::kRounds));
    EXPECT_EQ(slices.way(), fastest);
  }
}

TEST(SliceTrial, FirstTurnsDoNotCount) {
  SliceTrial slices(3);
  std::vector<int> turns(3, 0);
  while (slices.is_open()) {
    const int turn = turns[slices.way()]++;
    slices.add(turn == 0 ? 100 : turn);
  }
  EXPECT_THAT(slices.medians(), ::testing::Each(3.0));  // of 1 to 5
}

TEST(SliceTrial, OfOneWayIsOverBeforeItBegins) {
  EXPECT_FALSE(SliceTrial(1).is_open());
  EXPECT_EQ(SliceTrial(1).way(), 0U);
}

class TriedSlices : public testing::TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.train_iters = 50;
    config_.layout.pipeline_parallel = 2;
    config_.batch.micro_batch_size = 2;
    config_.pipeline.token_slices = "auto";
    config_.output.eval_interval = 0;
    // The gradient of the keys' biases is 0 but for rounding, which AdamW would make steps of.
    config_.optimizer.adamw.epsilon = 1e-6;
    const slicing::CostModel forward{.lengths = {1, 4, 8, 16}, .without_context = {2, 5, 8.5, 15}};
    const slicing::StageCosts stage{.forward = forward, .backward = forward.times(2)};
    profiles_ = {{.stages = {stage, stage}}};
    profiles_[0].key.stages = 2;
    profiles_[0].key.sequences = 2;
    profiles_[0].key.tokens = 16;
  }

  // What the first rank's Trainer says was chosen; every rank must say the same.
  std::vector<slicing::ChosenSlices> chosen_by_training() {
    std::mutex mutex;
    std::vector<slicing::ChosenSlices> all;
    on_ranks(config_, [&](Trainer& trainer, Communicator&) {
      trainer.when_slices_are_chosen([&](const slicing::ChosenSlices& chosen) {
        const std::lock_guard lock(mutex);
        all.push_back(chosen);
      });
      trainer.start();
      TrainingObserver observer;
      trainer.run(observer);
    });
    return all;
  }
};

TEST_F(TriedSlices, TrainAsAnyOtherUpdatesDo) {
  const PipelinePlan plan = plan_pipeline(config_, profiles_);
  ASSERT_GE(plan.ways(), 3U);
  const testing::TrainingRun tried = train(config_);
  TrainConfig alone = config_;
  alone.layout.pipeline_parallel = 1;
  alone.pipeline.token_slices = "";
  testing::expect_same_training(tried, train(alone), "slices in turns");
}

TEST_F(TriedSlices, AreChosenAlikeByAllRanksAndTakenWithoutATrialAfterwards) {
  config_.layout.data_parallel = 2;
  const PipelinePlan plan = plan_pipeline(config_, profiles_);
  const std::vector<slicing::ChosenSlices> chosen = chosen_by_training();
  ASSERT_EQ(chosen.size(), 4U);  // ranks
  EXPECT_THAT(chosen, ::testing::Each(chosen.front()));
  const auto is_chosen = [&](std::size_t way) { return plan.way(way).cuts == chosen.front().cuts; };
  std::size_t found = 0;
  for (std::size_t way = 0; way < plan.ways(); ++way) found += is_chosen(way) ? 1U : 0U;
  EXPECT_EQ(found, 1U);
  profiles_.front().chosen = {chosen.front()};
  const PipelinePlan later = plan_pipeline(config_, profiles_);
  EXPECT_THAT(later.alternatives, IsEmpty());
  EXPECT_EQ(later.cuts, chosen.front().cuts);
  EXPECT_THAT(chosen_by_training(), IsEmpty());
  const testing::TrainingRun first = train(config_), second = train(config_);
  EXPECT_EQ(first.losses, second.losses);  // bit for bit
  EXPECT_EQ(first.parameters, second.parameters);
}

// Micro-batches are chosen with their slices: of one and of two sequences, which take less than twice as long.
TEST_F(TriedSlices, MayBeOfMicroBatchesOfDifferentSizes) {
  config_.pipeline.token_slices = "joint";
  config_.batch.global_batch_size = 5;
  const slicing::CostModel forward{.lengths = {1, 4, 8, 16}, .without_context = {1.5, 3, 5, 9}};
  slicing::Profile alone = profiles_[0];
  alone.key.sequences = 1;
  alone.stages.assign(2, {.forward = forward, .backward = forward.times(2)});
  profiles_.insert(profiles_.begin(), alone);
  ASSERT_THAT(config_.faults(), IsEmpty());
  const PipelinePlan plan = plan_pipeline(config_, profiles_);
  std::set<std::vector<std::int64_t>> sizes;
  for (std::size_t way = 0; way < plan.ways(); ++way) sizes.insert(plan.way(way).micro_batch_sizes);
  ASSERT_GE(sizes.size(), 2U);
  const testing::TrainingRun tried = train(config_);
  const std::vector<slicing::ChosenSlices> chosen = chosen_by_training();
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0], chosen[1]);
  EXPECT_EQ(chosen[0].sequences, 5);
  profiles_.front().chosen = {chosen[0]};
  const PipelinePlan later = plan_pipeline(config_, profiles_);
  EXPECT_THAT(later.alternatives, IsEmpty());
  EXPECT_EQ(later.cuts, chosen[0].cuts);
  const testing::TrainingRun again = train(config_);
  config_.layout.pipeline_parallel = 1;
  config_.pipeline.token_slices = "";
  const testing::TrainingRun one_rank = train(config_);
  testing::expect_same_training(tried, one_rank, "ways in turns");
  testing::expect_same_training(again, one_rank, "the way that was chosen");
}

TEST_F(TriedSlices, NeedTheMemoryOfTheLargestWayAlone) {
  const PipelinePlan plan = plan_pipeline(config_, profiles_);
  config_.train_iters = 1;
  const double all = train(config_).plans.front();
  double largest = 0;
  for (std::size_t way = 0; way < plan.ways(); ++way) {
    profiles_.front().chosen = {{.schedule = pipeline::name_of(plan.kind),
                                 .micro_batches = plan.schedule.micro_batches,
                                 .cuts = plan.way(way).cuts}};
    largest = std::max(largest, train(config_).plans.front());
  }
  EXPECT_GE(all, largest);
  EXPECT_LE(all, 1.05 * largest);  // what never lives at the same time is packed together, as well as can be
}

TEST_F(TriedSlices, OfARampWaitForItsLargestBatch) {
  config_.batch.rampup_batch_size = {2, 2, 20};
  config_.batch.global_batch_size = 4;
  EXPECT_EQ(chosen_by_training().size(), 2U);
  // Ten updates of two samples; too few of four.
  const std::size_t ways = plan_pipeline(config_, profiles_).ways();
  config_.train_iters = 5 + static_cast<std::int64_t>(ways * SliceTrial::kRounds);
  EXPECT_THAT(chosen_by_training(), IsEmpty());
}

}  // namespace
}  // namespace teratron
