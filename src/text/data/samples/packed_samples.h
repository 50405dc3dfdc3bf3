// GPT samples of whole documents: best-fit packing (Ding et al., arXiv 2404.10830).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/indexed/indexed_dataset.h"
#include "data/samples.h"
#include "data/samples/documents.h"
#include "data/samples/packing.h"
#include "data/split/corpus_split.h"

namespace teratron {

// A document of n tokens gives n - 1 inputs, each with the token after it as its target; the end of a document is no
// input. Documents with more inputs than seq_length are cut into pieces of seq_length and a rest. Pieces are packed
// (SamplePacking) and padded at the end; padding has no targets, and each of its tokens sees itself alone. So every
// token but the first of each document is a target once an epoch, and a document is cut only where it must be. An
// end-of-document token within a document separates nothing. Memory: 24 bytes a document, and 8 a sample; some 60 a
// document while it is made. Safe to use from many threads.
class PackedSamples : public Samples {
 public:
  // `documents`: reset_attention_mask is set, for pieces must not see one another. eod_mask_loss changes nothing: no
  // sample asks what follows a document. UserError: a part in which no document has two tokens.
  PackedSamples(std::shared_ptr<const IndexedDataset> dataset, const CorpusPart& part, std::int64_t seq_length,
                SampleOrder order, std::uint64_t seed, const DocumentOptions& documents);

  std::int64_t seq_length() const override { return seq_length_; }
  std::int64_t samples_per_epoch() const override { return packing_.samples(); }
  std::string left_out() const override;  // the padding
  std::string source(std::int64_t position) const override;
  // Known from the index alone, so that ranks agree on cuts by documents even if one can no longer read the corpus.
  std::vector<std::int32_t> first_keys(SampleRange positions) const override;
  SampleBatch make_batch(std::int64_t samples) const override;
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  TotalWeights total_weights(SampleRange positions) const override;

  // The inputs of a sample's pieces, as places in the corpus.
  std::vector<TokenRange> pieces(std::int64_t position) const;

 private:
  void read_tokens(std::int64_t position, SampleBatch& batch, std::int64_t begin) const;

  std::shared_ptr<const IndexedDataset> dataset_;
  std::int64_t seq_length_;
  DocumentOptions documents_;
  std::vector<TokenRange> pieces_;  // as they stand in the corpus
  SamplePacking packing_;
};

}  // namespace teratron
