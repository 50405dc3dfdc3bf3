// Samples for a trainer, whatever they are made of. A sample is a pure function of its position in the run: a resumed
// run continues after the samples it has consumed, and any two instances agree.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch_sampler.h"

namespace teratron {

// Samples in host memory, one after another; fields that they do not have are empty.
struct SampleBatch {
  std::vector<std::int32_t> ids, token_types;  // [samples, tokens]
  std::vector<std::int32_t> key_lengths;       // [samples]: tokens before the padding
  // For documents that share a sample, [samples, tokens]: the first token that each token sees; its position in its
  // document.
  std::vector<std::int32_t> first_keys, position_ids;
  std::vector<std::int32_t> targets;  // [samples, tokens]
  std::vector<float> weights;         // of the targets
  // [samples, tokens]: n for a target in the chosen answer of the sample's pair n (from 1), -n in the rejected one;
  // else 0. Each target of a pair has the pair's weight; TotalWeights::targets counts each pair once.
  std::vector<std::int32_t> answers;
  // For whole samples: one label each, or another number of them per group of samples (ModelTraits::labels_each).
  std::vector<std::int32_t> labels;
  std::vector<float> label_weights;
};

// Gives fields of a batch so many elements.
template <class... Fields>
void resize_fields(std::int64_t elements, Fields&... fields) {
  (fields.resize(static_cast<std::size_t>(elements)), ...);
}

enum class SampleOrder {
  kShuffled,    // training: each epoch in its own order
  kSequential,  // validation: the order of the corpus, every time
};

// Safe to use from many threads.
class Samples {
 public:
  virtual ~Samples() = default;

  virtual std::int64_t seq_length() const = 0;  // tokens per sample
  virtual std::int64_t samples_per_epoch() const = 0;

  // The unread part of the corpus, or the padding, in words; empty: none worth reporting.
  virtual std::string left_out() const { return {}; }

  // Where the sample at a position of the run comes from, in words: "document 12 of 'corpus', tokens 0 to 63".
  virtual std::string source(std::int64_t position) const { return fmt::format("position {}", position); }

  // Tokens of these samples before their padding; empty if no sample is padded.
  virtual std::vector<std::int32_t> lengths(SampleRange /*positions*/) const { return {}; }

  // The first token that each token of these samples sees, where the index says so without a token read; else empty.
  virtual std::vector<std::int32_t> first_keys(SampleRange /*positions*/) const { return {}; }

  // A batch with room for this many samples, with the fields that these samples have.
  virtual SampleBatch make_batch(std::int64_t samples) const = 0;
  // Writes the samples at these positions of the run, which continue through the epochs without end, to the batch from
  // index `at` on. A target's weight in the loss is 1, or 0 if there is none.
  virtual void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const = 0;
  // The sums of those weights; a loss is a mean over one of them. A sum may be 0: there is nothing to predict.
  struct TotalWeights {
    double targets = 0, labels = 0;
  };
  virtual TotalWeights total_weights(SampleRange positions) const = 0;
};

}  // namespace teratron
