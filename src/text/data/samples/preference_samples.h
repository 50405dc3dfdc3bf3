// Samples of pairs of answers: a chosen and a rejected one with their prompts, apart from each other in one sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/indexed/indexed_dataset.h"
#include "data/samples.h"
#include "data/samples/packing.h"
#include "data/split/corpus_split.h"

namespace teratron {

// Samples of a corpus whose documents are pairs (SequenceUnit::kPair). Both texts of a pair are in one sample; pairs
// are packed (SamplePacking). The targets are the answers' tokens, each with its SampleBatch::answers and weight 1, and
// total_weights counts pairs. A pair that is longer than a sample is cut: what is left to a text is half of the sample,
// or what the other leaves. One that loses all of an answer is left out. Memory: 64 bytes a pair, and 8 a sample. Safe
// to use from many threads.
class PreferenceSamples : public Samples {
 public:
  // UserError: no pair of the part has words of both answers within seq_length; a document is no whole pair.
  PreferenceSamples(std::shared_ptr<const IndexedDataset> dataset, const CorpusPart& part, std::int64_t seq_length,
                    SampleOrder order, std::uint64_t seed = 0);

  std::int64_t seq_length() const override { return seq_length_; }
  std::int64_t samples_per_epoch() const override { return packing_.samples(); }
  // Says how much was cut off and left out, and the share of padding.
  std::string left_out() const override;
  std::string source(std::int64_t position) const override;
  SampleBatch make_batch(std::int64_t samples) const override;
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  TotalWeights total_weights(SampleRange positions) const override;

 private:
  struct Answer {
    TokenRange text;           // with the prompt
    std::int64_t first_token;  // of the answer
    std::int64_t inputs() const { return text.size() - 1; }
    // Tokens of the answer, but for a first token of a text, which nothing predicts.
    TokenRange targets() const { return {std::max(first_token, text.begin + 1), text.end}; }
  };
  struct Pair {
    Answer chosen, rejected;
    std::int64_t inputs() const { return chosen.inputs() + rejected.inputs(); }
  };

  std::vector<Pair> find_pairs(const CorpusPart& part);  // counts, too
  Pair whole_pair(const CorpusPart& part, std::int64_t number) const;
  void cut(Pair& pair);
  std::vector<std::int64_t> inputs() const;  // of each pair
  void read_answer(const Answer& answer, std::int32_t number, SampleBatch& batch, std::int64_t sample,
                   std::int64_t& filled) const;

  std::shared_ptr<const IndexedDataset> dataset_;
  std::int64_t seq_length_;
  std::int64_t cut_ = 0, tokens_cut_ = 0, answer_tokens_cut_ = 0, empty_ = 0;
  std::vector<Pair> pairs_;
  SamplePacking packing_;
};

}  // namespace teratron
