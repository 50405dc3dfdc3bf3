#include "settings/bert_settings.h"

namespace teratron {
namespace {

constexpr Flag kMaskProb{"mask-prob"}, kShortSeqProb{"short-seq-prob"};

}  // namespace

Faults BertSettings::faults() const {
  Faults faults;
  faults.add_if(!(bert.masked_lm_prob > 0 && bert.masked_lm_prob < 1), "{} is {}; it must be between 0 and 1",
                kMaskProb, bert.masked_lm_prob);
  faults.add_if(!(bert.short_seq_prob >= 0 && bert.short_seq_prob <= 1), "{} is {}; it must be from 0 to 1",
                kShortSeqProb, bert.short_seq_prob);
  return faults;
}

void add_bert_fields(FieldList& list, BertSettings& settings) {
  list.add(std::string(kMaskProb.name), &settings.bert.masked_lm_prob, "P", "of BERT: the share of tokens to predict");
  list.add(std::string(kShortSeqProb.name), &settings.bert.short_seq_prob, "P",
           "of BERT: the share of samples that are made shorter than --seq-length");
}

}  // namespace teratron
