#include "settings/sample_settings.h"

#include <cmath>

#include "base/error.h"

namespace teratron {
namespace {

constexpr Flag kResetAttentionMask{"reset-attention-mask"}, kResetPositionIds{"reset-position-ids"};
constexpr Flag kEodMaskLoss{"eod-mask-loss"}, kSft{"sft"}, kPacking{"packing"}, kDpo{"dpo"}, kDpoBeta{"dpo-beta"};

std::int32_t end_token_of(const Tokenizer& tokenizer) {
  const std::optional<std::int32_t> end = tokenizer.end_of_text();
  if (end) return *end;
  throw_user_error(
      "where documents end is unknown: the tokenizer has no <|endoftext|>. Leave out --{}, --{} and --{}, or make the "
      "corpus with a tokenizer that has one",
      kResetAttentionMask.name, kResetPositionIds.name, kEodMaskLoss.name);
}

DocumentOptions flags_of(const DocumentSettings& settings) {
  return {.reset_attention_mask = settings.reset_attention_mask,
          .reset_position_ids = settings.reset_position_ids,
          .eod_mask_loss = settings.eod_mask_loss};
}

constexpr Flag kMaskProb{"mask-prob"}, kShortSeqProb{"short-seq-prob"}, kMaxNgram{"masking-max-ngram"};
constexpr std::int64_t kLongestByLength = 3;    // of Megatron-LM's BERT
constexpr std::int64_t kLongestGeometric = 10;  // of SpanBERT
constexpr std::int64_t kMostWords = 1 << 20;

}  // namespace

Faults DocumentSettings::faults(const std::filesystem::path& tokenizer) const {
  Faults faults;
  const bool joins = flags_of(*this).any() || packing != Packing::kStream;
  faults.add_if(sft && joins, "{} packs chats and keeps them apart by itself; leave out {}, {}, {} and {}", kSft,
                kResetAttentionMask, kResetPositionIds, kEodMaskLoss, kPacking);
  faults.add_if(dpo && joins, "{} packs pairs and keeps their answers apart by itself; leave out {}, {}, {} and {}",
                kDpo, kResetAttentionMask, kResetPositionIds, kEodMaskLoss, kPacking);
  faults.add_if(sft && dpo, "{} learns answers and {} prefers one of two; leave one of them out", kSft, kDpo);
  faults.add_if(!(dpo_beta > 0 && std::isfinite(dpo_beta)), "{} is {:g}; it must be above 0", kDpoBeta, dpo_beta);
  faults.add_if(!dpo && dpo_beta != PreferenceConfig().beta, "{} is for {}, which is missing", kDpoBeta, kDpo);
  if (!tokenizer.empty()) return faults;
  for (const auto& [flag, is_set] : {std::pair{kResetAttentionMask, reset_attention_mask},
                                     {kResetPositionIds, reset_position_ids},
                                     {kEodMaskLoss, eod_mask_loss}}) {
    faults.add_if(is_set, "{} needs {} DIR, the one the data was made with, to know where documents end", flag,
                  Flag{"tokenizer"});
  }
  return faults;
}

DocumentOptions DocumentSettings::options(const Tokenizer& tokenizer) const {
  DocumentOptions options = flags_of(*this);
  if (options.any()) options.end_token = end_token_of(tokenizer);
  return options;
}

DocumentOptions DocumentSettings::options(const std::filesystem::path& tokenizer) const {
  return flags_of(*this).any() ? options(Tokenizer::load(tokenizer)) : DocumentOptions();
}

void add_document_fields(FieldList& list, DocumentSettings& settings) {
  list.add_choice(std::string(kPacking.name), settings.packing,
                  {{"stream", Packing::kStream}, {"best-fit", Packing::kBestFit}},
                  "samples are cut from a stream of documents; best-fit: made of whole ones and padded, cutting only "
                  "those longer than --seq-length; needs --reset-attention-mask");
  list.add(std::string(kResetAttentionMask.name), &settings.reset_attention_mask, "",
           "documents in a sample, which end with <|endoftext|>, do not see one another");
  list.add(std::string(kResetPositionIds.name), &settings.reset_position_ids, "",
           "positions begin at 0 with every document in a sample");
  list.add(std::string(kEodMaskLoss.name), &settings.eod_mask_loss, "",
           "no loss for the token after <|endoftext|>: the loss is the mean over the other targets");
  list.add(std::string(kSft.name), &settings.sft, "",
           "corpora are of chats (teratron data chat): whole ones share a sample without seeing one another, and the "
           "loss is the mean over the assistant's words");
  list.add(
      std::string(kDpo.name), &settings.dpo, "",
      "corpora are of pairs of answers (teratron data preferences): prefer the chosen ones to the rejected ones, by "
      "DPO's sigmoid loss; the model without its adapters is the reference, so --lora-rank is needed");
  list.add(std::string(kDpoBeta.name), &settings.dpo_beta, "X",
           "how near the model stays to its reference with --dpo: its rewards are log-probabilities times this")
      .of(FieldScope::kRun);
}

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
  list.add(std::string(kMaskProb.name), &settings.options.masked_lm_prob, "P", "BERT: the share of tokens to predict");
  list.add(std::string(kShortSeqProb.name), &settings.options.short_seq_prob, "P",
           "BERT: the share of samples that are made shorter than --seq-length");
  list.add(std::string(kMaxNgram.name), &settings.max_ngram, "N",
           "BERT: words of a masked n-gram at most; 0: 3, or 10 with --masking-use-geometric-distribution");
  list.add("masking-use-geometric-distribution", &settings.options.ngrams.is_geometric, "",
           "BERT: n-grams of n words by p(n) ~ 0.8^(n - 1), as SpanBERT's, and not ~ 1/n");
}

}  // namespace teratron
