// Samples as the executor takes them, some at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/samples.h"
#include "executor/executor.h"
#include "slicing/document_cuts.h"

namespace teratron {

// Divides the weights of samples first .. first + count - 1 by the totals of their batch, whose weights so add up to 1.
void divide_weights(SampleBatch& batch, const Samples::TotalWeights& totals, std::int64_t tokens, std::int64_t first,
                    std::int64_t count);

// The samples of a batch in order of their lengths, the shortest first and equal ones as they stand, so that samples of
// a micro-batch need little padding. Empty if `lengths` is.
std::vector<std::int64_t> order_of_lengths(const std::vector<std::int32_t>& lengths);

// The slices of an executor whose micro-batches have cuts of their own (MicroBatch::slice_tokens); nullopt: they have
// not.
std::optional<slicing::DocumentSlices> slices_by_documents(Executor& executor);

// Cuts micro-batches out of batches of samples of so many tokens. Where all samples of a micro-batch are shorter, the
// padding after the longest one is cut off: it would be computed for nothing. Losses and gradients stay the same but
// for rounding, with dropout too, since masks go by the token positions in the uncut samples.
// Slices, where each micro-batch has its own, are cut by its documents.
class MicroBatchCutter {
 public:
  MicroBatchCutter(Executor& executor, std::int64_t tokens);

  // Samples first .. first + count - 1, which are moved together within the batch. Spans that samples do not
  // have stay empty.
  MicroBatch micro_batch(SampleBatch& batch, std::int64_t first, std::int64_t count) const;

 private:
  std::int64_t cut_length(const SampleBatch& batch, std::int64_t first, std::int64_t count) const;

  std::int64_t tokens_;
  std::int64_t unit_;                              // lengths are multiples of it, but for tokens_ itself
  std::optional<slicing::DocumentSlices> slices_;  // where each micro-batch has its own
};

// The tokens of micro-batches, without padding that key_lengths tell of; that of packed samples counts.
std::int64_t tokens_before_padding(std::span<const MicroBatch> micro_batches);

}  // namespace teratron
