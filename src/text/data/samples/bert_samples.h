// BERT's training and validation samples (arXiv 1810.04805, with the sentence order of ALBERT, arXiv 1909.11942, as in
// the Megatron-LM paper): pairs of consecutive texts with masked words. Masked n-grams have up to 3 words with
// probabilities ~ 1/n, as in Megatron-LM's program, or up to 10 by the geometric law of Joshi et al., which the paper
// cites.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/indexed/indexed_dataset.h"
#include "data/samples.h"
#include "data/samples/item_order.h"
#include "data/samples/sentence_segments.h"
#include "data/samples/word_masking.h"
#include "data/split/corpus_split.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// The vocabulary, as far as samples need it.
struct BertTokens {
  std::int32_t classify = 0, separate = 0, mask = 0, pad = 0;  // [CLS], [SEP], [MASK], [PAD]
  std::int64_t vocab_size = 0;
  std::vector<bool> continues_word;  // [vocab_size]: the token continues the word before it ("##...")
  std::vector<bool> is_special;      // [vocab_size]: never masked, and never a replacement
};

// UserError: the tokenizer is not WordPiece.
BertTokens bert_tokens(const Tokenizer& tokenizer);

struct BertOptions {
  double masked_lm_prob = 0.15;
  double short_seq_prob = 0.1;
  NgramLaw ngrams;
};

// Sample number `position` of a run is a pure function of (dataset, part, seq_length, order, seed, position) and the
// options. Positions continue through the epochs without end. Each epoch reads every segment (sentence_segments.h)
// once, in its own order, and cuts, swaps and masks it again. Safe to use from many threads.
//
// A sample is [CLS] A [SEP] B [SEP] and padding. The sentences of a segment are cut in two, each cut equally likely;
// one time in two the later part comes first. Tokens beyond the segment's target are cut off the longer side, one by
// one, at an end drawn for each. Maskable words lie in A or in B; a piece of a cut word counts as a word. The share
// masked_lm_prob of all tokens but the padding is masked (word_masking.h): each becomes [MASK] with p = 0.8, any token
// that is not special with p = 0.1, or stays.
//
// In a batch: token_types are 0 up to the first [SEP] and in the padding, 1 between; targets are the tokens before
// masking, with weight 1 where they were masked; labels are 1 if the later part comes first.
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
  std::string source(std::int64_t position) const override;
  // Contents of an epoch, for messages.
  struct Counts {
    std::int64_t documents = 0, documents_left_out = 0;  // of the part; left out: those with fewer than two sentences
    std::int64_t sentences = 0;                          // of the documents that are used
  };
  Counts counts() const;

  // UserError of reading: a token outside the vocabulary.
  SampleBatch make_batch(std::int64_t samples) const override;
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  std::vector<std::int32_t> lengths(SampleRange positions) const override;
  // Draws the samples to count their masked tokens; takes about as long as reading them.
  TotalWeights total_weights(SampleRange positions) const override;

 private:
  // One sample before masking, with memory to make the next one in.
  struct Drawn {
    std::vector<std::int32_t> ids;  // without the padding
    std::int64_t second = 0;        // index where B begins
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
  ItemOrder order_;
  std::uint64_t seed_;
  BertOptions options_;
  std::int32_t classify_, separate_, mask_, pad_;
  std::vector<TokenKind> kinds_;        // by token id
  std::vector<std::int32_t> ordinary_;  // tokens that are not special
  SentenceSegments segments_;
};

}  // namespace teratron
