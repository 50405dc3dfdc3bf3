// MicroBatch: inputs of one micro-batch, in host memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// Absent inputs are empty; a model says which ones it needs (ModelTraits). Dropout masks follow from the position of
// the micro-batch in the run, so that they do not depend on how the batch is cut.
struct MicroBatch {
  std::span<const std::int32_t> ids;          // [batch, tokens]
  std::span<const std::int32_t> token_types;  // [batch, tokens]
  std::span<const std::int32_t> key_lengths;  // [batch]: tokens before the padding; empty: there is none
  // Documents that share a sequence, [batch, tokens]: the first token that each token sees, and its position in its
  // document. Empty: each sequence is one document. ExecutorOptions must announce them.
  std::span<const std::int32_t> first_keys, position_ids;
  // A target for every token, each with its weight in the loss: its mask over the number that the loss is a mean of.
  std::span<const std::int32_t> targets;  // [batch, tokens]
  std::span<const float> weights;         // [batch, tokens]
  // Pairs of answers (executor/preferences.h), [batch, tokens]: the target is a token of the chosen answer of its
  // sequence's pair n (n, counted from 1), of the rejected one (-n), or of none (0). A pair's tokens all have its
  // weight. Empty: there are none.
  std::span<const std::int32_t> answers = {};
  // Labels of whole sequences or of groups of them, with their weights: [ModelTraits::labels_of(batch)]. Numbers, of a
  // head of one label, are the bits of fp32.
  std::span<const std::int32_t> labels;
  std::span<const float> label_weights;
  std::int64_t batch = 0, tokens = 0;
  // Tokens of each slice where ExecutorOptions::cuts have room for others; empty: theirs.
  std::vector<std::int64_t> slice_tokens = {};
  // Tokens of a sequence before padding that no sequence here needs was cut off, which dropout masks count by; 0:
  // nothing was.
  std::int64_t uncut_tokens = 0;
  std::int64_t first_sample = 0;  // the number of the first sequence in the whole batch; choices count one by one
  std::uint64_t seed = 0;
  std::uint32_t iteration = 0;
  double loss_scale = 1;  // times the gradients, not the loss that is returned
};

}  // namespace teratron
