// Cuts text for SentencePiece's BPE, whose files merge within a whole text, into words that merge alike: no merge joins
// two tokens where the text is cut.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tokenizer/bpe/bpe_model.h"

namespace teratron {

class WordJoints {
 public:
  explicit WordJoints(const BpeModel& model);  // the model is validated

  // The length in bytes of the first word of `text`, which is not empty.
  std::size_t first_word_length(std::string_view text) const {
    std::size_t end = 1;
    while (end < text.size() && is_joint(text[end - 1], text[end])) ++end;
    return end;
  }
  // An offset at or after `from` before an ASCII space and after another ASCII character, where words end. The end of
  // the text if there is none.
  std::size_t next_safe_cut(std::string_view text, std::size_t from) const;

 private:
  // Whether a merge joins a token that ends with `left` and one that begins with `right`, or both are of one character.
  bool is_joint(char left, char right) const {
    const auto bit = static_cast<unsigned char>(right);
    return (joints_[static_cast<unsigned char>(left)][bit / 64] >> (bit % 64) & 1) != 0;
  }

  std::array<std::array<std::uint64_t, 4>, 256> joints_{};
};

}  // namespace teratron
