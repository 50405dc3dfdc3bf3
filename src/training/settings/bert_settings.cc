#include "settings/bert_settings.h"

namespace teratron {
namespace {

constexpr Flag kMaskProb{"mask-prob"}, kShortSeqProb{"short-seq-prob"}, kMaxNgram{"masking-max-ngram"};
constexpr std::int64_t kLongestByLength = 3;    // of Megatron-LM's BERT
constexpr std::int64_t kLongestGeometric = 10;  // of SpanBERT
constexpr std::int64_t kMostWords = 1 << 20;

}  // namespace

BertOptions BertSettings::filled() const {
  BertOptions result = options;
  const std::int64_t usual = options.ngrams.is_geometric ? kLongestGeometric : kLongestByLength;
  result.ngrams.longest = static_cast<int>(max_ngram > 0 ? max_ngram : usual);
  return result;
}

Faults BertSettings::faults() const {
  Faults faults;
  faults.add_if(!(options.masked_lm_prob > 0 && options.masked_lm_prob < 1), "{} is {}; it must be between 0 and 1",
                kMaskProb, options.masked_lm_prob);
  faults.add_if(!(options.short_seq_prob >= 0 && options.short_seq_prob <= 1), "{} is {}; it must be from 0 to 1",
                kShortSeqProb, options.short_seq_prob);
  faults.need_between(kMaxNgram, max_ngram, 0, kMostWords);
  return faults;
}

void add_bert_fields(FieldList& list, BertSettings& settings) {
  list.add(std::string(kMaskProb.name), &settings.options.masked_lm_prob, "P",
           "of BERT: the share of tokens to predict");
  list.add(std::string(kShortSeqProb.name), &settings.options.short_seq_prob, "P",
           "of BERT: the share of samples that are made shorter than --seq-length");
  list.add(std::string(kMaxNgram.name), &settings.max_ngram, "N",
           "of BERT: words of a masked n-gram at most; 0: 3, or 10 with --masking-use-geometric-distribution");
  list.add("masking-use-geometric-distribution", &settings.options.ngrams.is_geometric, "",
           "of BERT: n-grams of n words by p(n) ~ 0.8^(n - 1), as SpanBERT's, and not ~ 1/n");
}

}  // namespace teratron
