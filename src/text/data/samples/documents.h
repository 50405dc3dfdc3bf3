// Documents that share a sample. A document ends with the end-of-document token, which belongs to it.
#pragma once

#include <cstdint>
#include <span>

namespace teratron {

// Treatment of documents in samples: Megatron-LM's flags of these names. `end_token` is needed if one of them is set.
struct DocumentOptions {
  bool reset_attention_mask = false;  // a token sees only its own document
  bool reset_position_ids = false;    // positions count from the document's first token in the sample
  bool eod_mask_loss = false;         // the token after an end of document is no target
  std::int32_t end_token = -1;

  bool any() const { return reset_attention_mask || reset_position_ids || eod_mask_loss; }
};

// For each token of a sample, the index in the sample where its document begins.
void find_document_starts(std::span<const std::int32_t> tokens, std::int32_t end_token, std::span<std::int32_t> starts);
// For each token of a sample, its position in its document.
void find_document_positions(std::span<const std::int32_t> tokens, std::int32_t end_token,
                             std::span<std::int32_t> positions);

}  // namespace teratron
