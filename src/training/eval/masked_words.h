// Words in the places of masks, as a BERT or RoBERTa of pre-training predicts them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/encoder.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct MaskedText {
  std::vector<std::int32_t> ids;    // the text's tokens in their frame (text_frame.h)
  std::vector<std::int32_t> masks;  // positions of masks in ids, ascending; one at least
};

// A token as people read it: WordPiece's of the vocabulary ("##ing"), else the bytes that it stands for; empty for
// padding of the model's vocabulary.
std::string token_text(const Tokenizer& tokenizer, std::int32_t token);

// Tokenizes a text, in which special tokens ("[MASK]", "<mask>") are written as in the vocabulary. UserError: the
// tokenizer has none, the text has no mask, or more than `most_tokens` tokens; `name` names it.
MaskedText masked_text(const Tokenizer& tokenizer, std::string_view text, std::int64_t most_tokens,
                       std::string_view name);

struct TokenChance {
  std::int32_t token = 0;
  double probability = 0;
};

// The likeliest `count` tokens of each mask of each text, the likeliest first and of equal ones the lower id:
// [texts][masks][count]. Every rank calls it and gets all. UserError: a logit is not finite.
std::vector<std::vector<std::vector<TokenChance>>> fill_masks(Encoder& encoder, std::span<const MaskedText> texts,
                                                              std::int64_t count,
                                                              const std::function<void(double share)>& done = {});

}  // namespace teratron
