// How documents that share a sample are kept apart: the flags.
#pragma once

#include <filesystem>

#include "base/faults.h"
#include "data/samples/documents.h"
#include "options/fields.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct DocumentSettings {
  bool reset_attention_mask = false, reset_position_ids = false, eod_mask_loss = false;

  // `tokenizer`: the one of the settings, empty if there is none.
  Faults faults(const std::filesystem::path& tokenizer) const;
  // Reads the tokenizer if a flag is set. UserError: it has no end-of-document token.
  DocumentOptions options(const std::filesystem::path& tokenizer) const;
  DocumentOptions options(const Tokenizer& tokenizer) const;
};

void add_document_fields(FieldList& list, DocumentSettings& settings);

}  // namespace teratron
