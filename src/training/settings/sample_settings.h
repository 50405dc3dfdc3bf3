// Settings of samples: documents that share one, and BERT's masks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/faults.h"
#include "data/samples/bert_samples.h"
#include "data/samples/documents.h"
#include "executor/preferences.h"
#include "options/fields.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

enum class Packing {
  kStream,   // samples are cut from a stream of documents (data/samples/gpt_samples.h)
  kBestFit,  // samples are of whole documents (data/samples/packed_samples.h)
};

struct DocumentSettings {
  bool reset_attention_mask = false, reset_position_ids = false, eod_mask_loss = false;
  Packing packing = Packing::kStream;
  bool sft = false;  // chats: apart from each other, and with a loss on the assistant's words alone
  bool dpo = false;  // pairs of answers, whose chosen one is to be preferred
  double dpo_beta = PreferenceConfig().beta;

  bool has_first_keys() const { return sft || dpo || reset_attention_mask; }
  bool has_position_ids() const { return sft || dpo || reset_position_ids; }
  std::optional<PreferenceConfig> preferences() const {
    return dpo ? std::optional(PreferenceConfig{.beta = dpo_beta}) : std::nullopt;
  }
  // `tokenizer`: folder of the settings; empty: none.
  Faults faults(const std::filesystem::path& tokenizer) const;
  // Reads the tokenizer if a flag is set. UserError: it has no end-of-document token.
  DocumentOptions options(const std::filesystem::path& tokenizer) const;
  DocumentOptions options(const Tokenizer& tokenizer) const;
};

void add_document_fields(FieldList& list, DocumentSettings& settings);

struct BertSettings {
  BertOptions options;
  std::int64_t max_ngram = 0;  // words; 0: 3, or 10 by the geometric law

  BertOptions filled() const;  // options with max_ngram
  Faults faults() const;
};

void add_bert_fields(FieldList& list, BertSettings& settings);

}  // namespace teratron
