// Documents that share a sample. A document ends with the end-of-document token, which belongs to it.
#pragma once

#include <cstdint>
#include <span>

namespace teratron {

// How samples treat them: Megatron-LM's flags of these names. `end_token` is needed where one of them is set.
struct DocumentOptions {
  bool reset_attention_mask = false;  // a token sees those of its own document only
  bool reset_position_ids = false;    // positions count from the document's first token in the sample
  bool eod_mask_loss = false;         // what follows an end-of-document token is no target
  std::int32_t end_token = -1;

  bool any() const { return reset_attention_mask || reset_position_ids || eod_mask_loss; }
};

// For each token of a sample, where in the sample its document begins.
void find_document_starts(std::span<const std::int32_t> tokens, std::int32_t end_token, std::span<std::int32_t> starts);
// For each token of a sample, its place in its document.
void find_document_positions(std::span<const std::int32_t> tokens, std::int32_t end_token,
                             std::span<std::int32_t> positions);

}  // namespace teratron
