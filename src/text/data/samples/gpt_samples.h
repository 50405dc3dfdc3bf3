// GPT training and validation samples: sequences of tokens by their position in the run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/indexed/indexed_dataset.h"
#include "data/samples.h"
#include "data/samples/documents.h"
#include "data/samples/epoch_cache.h"
#include "data/samples/epoch_order.h"
#include "data/split/corpus_split.h"

namespace teratron {

// Sample number `position` of a run is a pure function of (dataset, part, seq_length, order, seed, position): a run
// resumes after the samples it has consumed, and any two instances agree. Positions continue through the epochs without
// end; each epoch has every chunk once. Safe to use from many threads.
class GptSamples : public Samples {
 public:
  // UserError: a part too short for one sample, with both sizes and what to do.
  GptSamples(std::shared_ptr<const IndexedDataset> dataset, CorpusPart part, std::int64_t seq_length, SampleOrder order,
             std::uint64_t seed = 0, const DocumentOptions& documents = {});

  std::int64_t seq_length() const override { return seq_length_; }
  // (tokens of the part - 1) / seq_length; the remainder is less than seq_length tokens. The shuffled order skips other
  // tokens in each epoch, the sequential one skips the end.
  std::int64_t samples_per_epoch() const override { return samples_per_epoch_; }

  std::string source(std::int64_t position) const override;

  // Writes seq_length + 1 tokens: the inputs are all but the last, the targets all but the first. position >= 0.
  void sample(std::int64_t position, std::span<std::int32_t> tokens) const;

  SampleBatch make_batch(std::int64_t samples) const override;
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  // Each target has weight 1, except those that DocumentOptions::eod_mask_loss masks, for which samples are read.
  TotalWeights total_weights(SampleRange positions) const override;

 private:
  void read_documents(SampleBatch& batch, std::int64_t begin) const;
  std::shared_ptr<const EpochOrder> epoch_order(std::int64_t epoch) const;

  std::shared_ptr<const IndexedDataset> dataset_;
  CorpusPart part_;
  std::int64_t seq_length_;
  SampleOrder order_;
  std::uint64_t seed_;
  DocumentOptions documents_;
  std::int64_t samples_per_epoch_;

  mutable EpochCache<EpochOrder> orders_;
};

}  // namespace teratron
