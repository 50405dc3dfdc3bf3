// Special tokens around the texts that encoders read: BERT's [CLS] A [SEP] and [CLS] A [SEP] B [SEP], RoBERTa's <s> A
// </s> and <s> A </s> </s> B </s>.
#pragma once

#include <cstdint>
#include <optional>

#include "tokenizer/tokenizer.h"

namespace teratron {

struct TextFrame {
  std::int32_t begin = 0, end = 0, mask = 0, pad = 0;
  std::int32_t between = 1;  // so many of `end` stand between two texts

  static constexpr std::int64_t kTokensOfOne = 2;
  std::int64_t tokens_of_two() const { return kTokensOfOne + between; }
};

// The frame of WordPiece, or of byte-level BPE whose vocabulary has RoBERTa's special tokens; nullopt: another
// tokenizer.
std::optional<TextFrame> text_frame(const Tokenizer& tokenizer);

}  // namespace teratron
