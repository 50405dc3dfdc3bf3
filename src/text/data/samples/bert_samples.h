// BERT training and validation samples (arXiv 1810.04805; with the sentence order of ALBERT, arXiv 1909.11942, as the
// Megatron-LM paper has it): pairs of consecutive texts, some words of which are masked. Masked n-grams have up to 3
// words with probabilities ~ 1/n, as in Megatron-LM's program, or up to 10 by the geometric law of Joshi et al., whom
// the paper cites.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/indexed/indexed_dataset.h"
#include "data/samples.h"
#include "data/samples/epoch_cache.h"
#include "data/samples/permutation.h"
#include "data/samples/sentence_segments.h"
#include "data/samples/word_masking.h"
#include "data/split/corpus_split.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// What samples have to know of a vocabulary.
struct BertTokens {
  std::int32_t classify = 0, separate = 0, mask = 0, pad = 0;  // [CLS], [SEP], [MASK], [PAD]
  std::int64_t vocab_size = 0;
  std::vector<bool> continues_word;  // [vocab_size]: the token goes on with the word before it ("##...")
  std::vector<bool> is_special;      // [vocab_size]: no word: never masked, and never put in a word's place
};

// UserError: the tokenizer is no WordPiece.
BertTokens bert_tokens(const Tokenizer& tokenizer);

struct BertOptions {
  double masked_lm_prob = 0.15;
  double short_seq_prob = 0.1;
  NgramLaw ngrams;
};

// Sample number `position` of a run is a pure function of (dataset, part, seq_length, order, seed, position) and the
// options. Positions go on through the epochs without end; every epoch reads each segment (sentence_segments.h) once,
// in an order of its own, and cuts, swaps and masks it anew. Safe to use from many threads.
//
// A sample is [CLS] A [SEP] B [SEP] and padding. The sentences of a segment are cut in two, each cut equally likely;
// one time in two the later part comes first. What is longer than the segment's target is cut off the longer side,
// token by token, at an end drawn for each. Words that may be masked lie in A or in B; a piece of a word that was cut
// is a word. Of all tokens but the padding, masked_lm_prob are masked (word_masking.h): each of them becomes [MASK]
// with p = 0.8, any token that is not special with p = 0.1, or stays as it is.
//
// In a batch: token_types 0 up to the first [SEP] and in the padding, 1 behind; targets are the tokens before masking
// at every place, and count where they were masked; labels are 1 where the later part comes first.
class BertSamples : public Samples {
 public:
  // [CLS], [SEP] twice, and a token on each side.
  static constexpr std::int64_t kShortestSequence = 5;

  // UserError: a sequence too short for a pair, or a part without a document of two sentences, with what to do.
  BertSamples(std::shared_ptr<const IndexedDataset> dataset, CorpusPart part, std::int64_t seq_length,
              SampleOrder order, std::uint64_t seed, const BertTokens& tokens, const BertOptions& options = {});

  std::int64_t seq_length() const override { return seq_length_; }
  std::int64_t samples_per_epoch() const override { return segments_.count(); }
  std::string left_out() const override;
  // What an epoch is made of, for people.
  struct Counts {
    std::int64_t documents = 0, documents_left_out = 0;  // of the part; left out: those with fewer than two sentences
    std::int64_t sentences = 0;                          // of the documents that are not left out
  };
  Counts counts() const;

  // UserError of reading: a token outside the vocabulary.
  SampleBatch make_batch(std::int64_t samples) const override;
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  std::vector<std::int32_t> lengths(SampleRange positions) const override;
  // Draws the samples to count their masked tokens, which takes about as long as reading them.
  TotalWeights total_weights(SampleRange positions) const override;

 private:
  // One sample, before masking, and memory to make the next one in.
  struct Drawn {
    std::vector<std::int32_t> ids;  // without the padding
    std::int64_t second = 0;        // where B begins
    bool is_swapped = false;
    std::vector<WordRun> masked;
    std::int64_t masked_tokens = 0;

    std::vector<TokenKind> kinds;
    std::vector<WordRun> words;
    std::vector<std::int32_t> scratch;
  };
  void draw(std::int64_t position, Drawn& drawn) const;
  void draw_pair(std::int64_t position, Drawn& drawn) const;
  void write(std::int64_t position, const Drawn& drawn, SampleBatch& batch, std::int64_t at) const;
  SentenceSegment segment_at(std::int64_t position) const;

  std::shared_ptr<const IndexedDataset> dataset_;
  CorpusPart part_;
  std::int64_t seq_length_;
  SampleOrder order_;
  std::uint64_t seed_;
  BertOptions options_;
  std::int32_t classify_, separate_, mask_, pad_;
  std::vector<TokenKind> kinds_;        // of the vocabulary
  std::vector<std::int32_t> ordinary_;  // its tokens that are not special
  SentenceSegments segments_;

  mutable EpochCache<RandomPermutation> orders_;
};

}  // namespace teratron
