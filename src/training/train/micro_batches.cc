#include "train/micro_batches.h"

#include <algorithm>
#include <numeric>

#include "base/round_up.h"

namespace teratron {
namespace {

// A GPU captures the launches of a layer once for each length (executor/pass_graphs.h), so there should be few.
constexpr std::int64_t kGraphUnit = 64;

// Rows of `from` elements become rows of their first `to`.
template <class T>
void shorten_rows(std::vector<T>& values, std::int64_t first, std::int64_t count, std::int64_t from, std::int64_t to) {
  if (values.empty() || from == to) return;
  const auto begin = values.begin() + first * from;
  for (std::int64_t row = 1; row < count; ++row) std::copy_n(begin + row * from, to, begin + row * to);
}

template <class T>
std::span<const T> part_of(const std::vector<T>& values, std::int64_t begin, std::int64_t count) {
  if (values.empty()) return {};
  return std::span(values).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

// Labels that belong to the first so many samples of a batch.
std::int64_t labels_before(const SampleBatch& batch, std::int64_t tokens, std::int64_t sample) {
  const auto labels = static_cast<std::int64_t>(batch.labels.size());
  return sample * labels / (static_cast<std::int64_t>(batch.ids.size()) / tokens);
}

}  // namespace

std::optional<slicing::DocumentSlices> slices_by_documents(Executor& executor) {
  const ExecutorOptions& options = executor.options();
  if (options.cuts.empty() || options.cuts.front().tokens() == options.tokens) return std::nullopt;
  double keys = 0, products = 0;
  for (const TransformerLayer& layer : executor.model().layers) {
    const Work work = layer.work();
    keys += 4.0 * static_cast<double>(work.attention.columns());  // its score, and its value's share
    products += work.product_operations();
  }
  return slicing::DocumentSlices{.tokens = options.tokens,
                                 .unit = options.sequence_parallel ? executor.mesh().tensor->size() : 1,
                                 .count = static_cast<int>(options.cuts.front().slice_tokens.size()),
                                 .key_cost = keys / products,
                                 .window = executor.plan().memory().window()};
}

void divide_weights(SampleBatch& batch, const Samples::TotalWeights& totals, std::int64_t tokens, std::int64_t first,
                    std::int64_t count) {
  const auto divide = [](std::vector<float>& weights, double total, std::int64_t begin, std::int64_t end) {
    if (weights.empty()) return;
    // A total of 0 is that of a batch without targets.
    std::transform(weights.begin() + begin, weights.begin() + end, weights.begin() + begin, [total](float weight) {
      return total > 0 ? static_cast<float>(static_cast<double>(weight) / total) : 0;
    });
  };
  divide(batch.weights, totals.targets, first * tokens, (first + count) * tokens);
  divide(batch.label_weights, totals.labels, labels_before(batch, tokens, first),
         labels_before(batch, tokens, first + count));
}

std::vector<std::int64_t> order_of_lengths(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int64_t sample) { return lengths[static_cast<std::size_t>(sample)]; });
  return order;
}

MicroBatchCutter::MicroBatchCutter(Executor& executor, std::int64_t tokens)
    : tokens_(tokens), unit_(tokens), slices_(slices_by_documents(executor)) {
  const ExecutorOptions& options = executor.options();
  // Slices have lengths of their own, and the rows of several samples that ranks share are those of whole samples.
  if (options.schedule.slices > 1 || (options.sequence_parallel && options.batch > 1)) return;
  unit_ = options.sequence_parallel ? executor.mesh().tensor->size() : 1;
  if (executor.backend().captures_graphs()) unit_ = std::lcm(unit_, kGraphUnit);
}

std::int64_t MicroBatchCutter::cut_length(const SampleBatch& batch, std::int64_t first, std::int64_t count) const {
  if (batch.key_lengths.empty()) return tokens_;
  const auto begin = batch.key_lengths.begin() + first;
  const std::int64_t longest = std::max(1, *std::max_element(begin, begin + count));
  return std::min(tokens_, round_up(longest, unit_));
}

MicroBatch MicroBatchCutter::micro_batch(SampleBatch& batch, std::int64_t first, std::int64_t count) const {
  const std::int64_t length = cut_length(batch, first, count), begin = first * tokens_, size = count * length;
  const std::int64_t first_label = labels_before(batch, tokens_, first),
                     labels = labels_before(batch, tokens_, first + count) - first_label;
  for (auto* values :
       {&batch.ids, &batch.token_types, &batch.first_keys, &batch.position_ids, &batch.targets, &batch.answers}) {
    shorten_rows(*values, first, count, tokens_, length);
  }
  shorten_rows(batch.weights, first, count, tokens_, length);
  const std::span<const std::int32_t> first_keys = part_of(batch.first_keys, begin, size);
  return {.ids = part_of(batch.ids, begin, size),
          .token_types = part_of(batch.token_types, begin, size),
          .key_lengths = part_of(batch.key_lengths, first, count),
          .first_keys = first_keys,
          .position_ids = part_of(batch.position_ids, begin, size),
          .targets = part_of(batch.targets, begin, size),
          .weights = part_of(batch.weights, begin, size),
          .answers = part_of(batch.answers, begin, size),
          .labels = part_of(batch.labels, first_label, labels),
          .label_weights = part_of(batch.label_weights, first_label, labels),
          .batch = count,
          .tokens = length,
          .slice_tokens = slices_ ? slicing::cut_by_documents(*slices_, first_keys) : std::vector<std::int64_t>(),
          .uncut_tokens = tokens_};
}

std::int64_t tokens_before_padding(std::span<const MicroBatch> micro_batches) {
  std::int64_t tokens = 0;
  for (const MicroBatch& one : micro_batches) {
    tokens += one.key_lengths.empty()
                  ? one.batch * one.tokens
                  : std::accumulate(one.key_lengths.begin(), one.key_lengths.end(), std::int64_t{0});
  }
  return tokens;
}

}  // namespace teratron
