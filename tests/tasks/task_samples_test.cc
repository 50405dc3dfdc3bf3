// Examples of every task as training samples: each once an epoch and whole, padded, with weights for labels alone.
#include "tasks/task_samples.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "tasks/task_files.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAreArray;

class SamplesOfTask : public TaskFiles, public ::testing::WithParamInterface<TaskKind> {
 protected:
  TaskSamples samples(SampleOrder order) const { return {examples_, tokens_, order, /*seed=*/5}; }
  std::int64_t count() const { return examples_.sequences(); }

  // Ids and lengths of the sequences of each example of an epoch, in its order.
  std::vector<std::vector<std::int32_t>> epoch(const TaskSamples& from, std::int64_t number) const {
    SampleBatch batch = from.make_batch(count());
    from.read({number * count(), count()}, batch, 0);
    std::vector<std::vector<std::int32_t>> all(static_cast<std::size_t>(examples_.count()));
    for (std::int64_t i = 0; i < count(); ++i) {
      const std::int32_t length = batch.key_lengths[static_cast<std::size_t>(i)];
      std::vector<std::int32_t>& example = all[static_cast<std::size_t>(i / examples_.sequences_each)];
      example.push_back(length);
      const auto row = batch.ids.begin() + i * tokens_;
      example.insert(example.end(), row, row + length);
    }
    return all;
  }

  const std::unique_ptr<TaskSet> set_ = open(GetParam(), task_file(GetParam(), 30, 7), /*training=*/true);
  const TaskExamples& examples_ = set_->examples();
  const std::int64_t tokens_ = examples_.longest() + 3;
};
INSTANTIATE_TEST_SUITE_P(Each, SamplesOfTask, ::testing::ValuesIn(all_tasks().begin(), all_tasks().end()),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST_P(SamplesOfTask, AnEpochHasEachExampleOnceAndWholeInAnOrderOfItsOwn) {
  const TaskSamples shuffled = samples(SampleOrder::kShuffled);
  auto in_file = epoch(samples(SampleOrder::kSequential), 0), first = epoch(shuffled, 0), second = epoch(shuffled, 1);
  EXPECT_NE(first, in_file);
  EXPECT_NE(first, second);
  for (auto* const examples : {&in_file, &first, &second}) std::ranges::sort(*examples);
  EXPECT_EQ(first, in_file);
  EXPECT_EQ(second, in_file);
}

TEST_P(SamplesOfTask, SequencesOfAnExampleHaveTheLengthOfItsLongest) {
  const std::vector<std::int32_t> lengths = samples(SampleOrder::kSequential).lengths({0, count()});
  if (examples_.are_negatives) {
    EXPECT_TRUE(lengths.empty()) << "negatives of one another are not sorted";
    return;
  }
  ASSERT_EQ(std::ssize(lengths), count());
  const std::int64_t each = examples_.sequences_each;
  for (std::int64_t i = 0; i < count(); ++i) {
    std::int64_t longest = 0;
    for (std::int64_t k = i / each * each; k < (i / each + 1) * each; ++k) {
      longest = std::max(longest, std::ssize(examples_.sequence(k)));
    }
    EXPECT_EQ(lengths[static_cast<std::size_t>(i)], longest) << i;
  }
}

TEST_P(SamplesOfTask, PaddingIsZeroAndLabelsAloneWeigh) {
  const TaskSamples in_file = samples(SampleOrder::kSequential);
  SampleBatch batch = in_file.make_batch(count());
  for (auto* const used : {&batch.ids, &batch.token_types, &batch.key_lengths, &batch.targets, &batch.labels}) {
    std::ranges::fill(*used, 9);
  }
  for (auto* const used : {&batch.weights, &batch.label_weights}) std::ranges::fill(*used, 9.0F);
  in_file.read({0, count()}, batch, 0);
  for (std::int64_t i = 0; i < count(); ++i) {
    const std::span<const std::int32_t> sequence = examples_.sequence(i);
    EXPECT_EQ(batch.key_lengths[static_cast<std::size_t>(i)], std::ssize(sequence));
    std::vector<std::int32_t> ids(sequence.begin(), sequence.end()), types(static_cast<std::size_t>(tokens_));
    ids.resize(types.size());
    std::fill(types.begin() + examples_.second(i), types.begin() + std::ssize(sequence), 1);
    const auto row = static_cast<std::size_t>(i * tokens_);
    EXPECT_THAT(std::span(batch.ids).subspan(row, ids.size()), ElementsAreArray(ids));
    EXPECT_THAT(std::span(batch.token_types).subspan(row, types.size()), ElementsAreArray(types));
  }
  const bool of_tokens = examples_.labels_tokens();
  const std::vector<float>& weights = of_tokens ? batch.weights : batch.label_weights;
  const Samples::TotalWeights totals = in_file.total_weights({0, count()});
  const auto known = std::ssize(examples_.labels) - std::ranges::count(examples_.labels, kUnknownLabel);
  EXPECT_GT(known, 0);
  EXPECT_EQ(std::reduce(weights.begin(), weights.end(), 0.0), static_cast<double>(known));
  EXPECT_EQ(of_tokens ? totals.targets : totals.labels, static_cast<double>(known));
  EXPECT_EQ(of_tokens ? totals.labels : totals.targets, 0);
}

}  // namespace
}  // namespace teratron::testing
