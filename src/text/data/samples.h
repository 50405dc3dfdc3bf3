// Samples: what a trainer reads, whatever it is made of. A sample is a pure function of its position in the run, so a
// run goes on from the number of samples it has consumed, and any two instances agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch_sampler.h"

namespace teratron {

// Samples in host memory, one after another; what they do not have is empty.
struct SampleBatch {
  std::vector<std::int32_t> ids, token_types;  // [samples, tokens]
  std::vector<std::int32_t> key_lengths;       // [samples]: tokens before the padding
  // Of documents that share a sample, [samples, tokens]: the first token that each token sees; its place in its
  // document.
  std::vector<std::int32_t> first_keys, position_ids;
  std::vector<std::int32_t> targets;  // [samples, tokens]
  std::vector<float> weights;         // of the targets
  // Of whole samples: one each, or another number for every so many of them (ModelTraits::labels_each).
  std::vector<std::int32_t> labels;
  std::vector<float> label_weights;
};

enum class SampleOrder {
  kShuffled,    // training: every epoch in an order of its own
  kSequential,  // validation: as the corpus has them, the same every time
};

// Safe to use from many threads.
class Samples {
 public:
  virtual ~Samples() = default;

  virtual std::int64_t seq_length() const = 0;  // tokens a sample
  virtual std::int64_t samples_per_epoch() const = 0;

  // What of the corpus is not read, for people; empty: nothing that has to be said.
  virtual std::string left_out() const { return {}; }

  // Tokens of these samples before their padding; nothing where no sample has any.
  virtual std::vector<std::int32_t> lengths(SampleRange /*positions*/) const { return {}; }

  // Room for so many samples, with what these samples have.
  virtual SampleBatch make_batch(std::int64_t samples) const = 0;
  // Writes the samples at these positions of the run, which go on through the epochs without end, from place `at` of
  // the batch on. Weights say how much a target counts beside the others: 1, or 0 where there is none.
  virtual void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const = 0;
  // The sums of those weights; a loss is a mean over one of them. One may be 0: then nothing is to be predicted.
  struct TotalWeights {
    double targets = 0, labels = 0;
  };
  virtual TotalWeights total_weights(SampleRange positions) const = 0;
};

}  // namespace teratron
