#include "tasks/task_samples.h"

#include <algorithm>

#include "base/error.h"

namespace teratron {
namespace {

// A stream of RandomPurpose::kShuffle beside those of data/samples/epoch_order.cc, with the epoch as the step.
constexpr std::uint32_t kExamplesStream = 128;

// Writes labels and their weights; a missing label has weight 0.
void put_labels(std::span<const std::int32_t> labels, std::span<std::int32_t> to, std::span<float> weights) {
  std::ranges::fill(to, 0);
  std::ranges::fill(weights, 0.0F);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kUnknownLabel) continue;
    to[i] = labels[i];
    weights[i] = 1;
  }
}

}  // namespace

TaskSamples::TaskSamples(const TaskExamples& examples, std::int64_t seq_length, SampleOrder order, std::uint64_t seed)
    : examples_(examples),
      seq_length_(seq_length),
      order_(order, {.seed = seed, .purpose = RandomPurpose::kShuffle, .stream = kExamplesStream}) {
  check(examples.count() > 0, "TaskSamples: examples");
  check(examples.longest() <= seq_length, "TaskSamples: a sequence longer than samples are");
}

std::int64_t TaskSamples::sequence_at(std::int64_t position) const {
  const std::int64_t each = examples_.sequences_each;
  return order_.item(position / each, examples_.count()) * each + position % each;
}

std::string TaskSamples::source(std::int64_t position) const {
  return fmt::format("example {} of those that were read, counted from 0",
                     sequence_at(position) / examples_.sequences_each);
}

std::vector<std::int32_t> TaskSamples::lengths(SampleRange positions) const {
  std::vector<std::int32_t> all;
  if (examples_.are_negatives) return all;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const std::int64_t example = sequence_at(positions.first + i) / examples_.sequences_each;
    all.push_back(static_cast<std::int32_t>(examples_.longest_of(example)));
  }
  return all;
}

SampleBatch TaskSamples::make_batch(std::int64_t samples) const {
  const std::int64_t tokens = samples * seq_length_;
  SampleBatch batch;
  resize_fields(tokens, batch.ids, batch.token_types);
  resize_fields(samples, batch.key_lengths);
  if (examples_.labels_tokens()) resize_fields(tokens, batch.targets, batch.weights);
  resize_fields(samples / examples_.sequences_each * examples_.labels_each, batch.labels, batch.label_weights);
  return batch;
}

void TaskSamples::read(SampleRange positions, SampleBatch& batch, std::int64_t at) const {
  const std::int64_t each = examples_.sequences_each;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const std::int64_t number = sequence_at(positions.first + i), slot = at + i;
    const std::span<const std::int32_t> ids = examples_.sequence(number);
    const auto row = slot * seq_length_, length = std::ssize(ids);
    std::copy(ids.begin(), ids.end(), batch.ids.begin() + row);
    std::fill(batch.ids.begin() + row + length, batch.ids.begin() + row + seq_length_, 0);
    const auto types = batch.token_types.begin() + row;
    std::fill(types, types + seq_length_, 0);
    std::fill(types + examples_.second(number), types + length, 1);
    batch.key_lengths[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(length);
    if (number % each != 0) continue;
    check_equal(slot % each, std::int64_t{0}, "the slot of an example in its batch");
    const std::span<const std::int32_t> labels = examples_.labels_of(number / each);
    if (examples_.labels_tokens()) {
      const auto begin = static_cast<std::size_t>(row), size = static_cast<std::size_t>(seq_length_);
      put_labels(labels, std::span(batch.targets).subspan(begin, size), std::span(batch.weights).subspan(begin, size));
    } else {
      const auto begin = static_cast<std::size_t>(slot / each * examples_.labels_each);
      put_labels(labels, std::span(batch.labels).subspan(begin, labels.size()),
                 std::span(batch.label_weights).subspan(begin, labels.size()));
    }
  }
}

Samples::TotalWeights TaskSamples::total_weights(SampleRange positions) const {
  double labels = 0;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const std::int64_t number = sequence_at(positions.first + i);
    if (number % examples_.sequences_each != 0) continue;
    const std::span<const std::int32_t> here = examples_.labels_of(number / examples_.sequences_each);
    labels += static_cast<double>(std::ssize(here) - std::ranges::count(here, kUnknownLabel));
  }
  if (examples_.labels_tokens()) return {.targets = labels};
  return {.labels = labels};
}

}  // namespace teratron
