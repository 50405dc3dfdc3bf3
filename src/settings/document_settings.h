// How documents that share a sample are kept apart: the flags, and what a checkpoint has to say on it.
#pragma once

#include <filesystem>

#include "base/faults.h"
#include "checkpoint/native/checkpoint.h"
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
};

void add_document_fields(FieldList& list, DocumentSettings& settings);

// In a checkpoint's training state, for evaluation as the model was trained.
void record_documents(const DocumentSettings& settings, TrainingState& state);
// What that says of attention and positions; every target counts. UserError as options().
DocumentOptions recorded_documents(const TrainingState& state, const Tokenizer& tokenizer);

}  // namespace teratron
