// BERT's normalizer (Devlin et al. 2018; Hugging Face's BertNormalizer): cleans the characters of a text, and for
// uncased models decomposes them, removes accents and lower-cases them. Each character keeps its bytes in the text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

struct NormalizedCharacter {
  char32_t code;
  std::uint32_t begin, end;  // bytes of the text
};

// Holds scratch memory: one object per thread.
class BertNormalizer {
 public:
  // The model's `lower_case`, `strip_accents` and `split_chinese` select the steps.
  explicit BertNormalizer(const WordPieceModel& model)
      : lower_case_(model.lower_case), strip_accents_(model.strip_accents), split_chinese_(model.split_chinese) {}

  // White space becomes ' ', and ideographs get spaces around them. Bytes that are not UTF-8 are dropped, as U+FFFD is.
  // Valid until the next call. If a text is cut just before or after ASCII that is no letter or number, or before any
  // ASCII, its parts have the characters of the whole.
  std::span<const NormalizedCharacter> normalize(std::string_view text);

 private:
  void clean(std::string_view text);
  void decompose();
  void sort_marks(std::size_t begin, std::size_t end);
  void strip_accents();
  void lower();

  struct Part {
    NormalizedCharacter character;
    std::uint8_t combining_class;
    bool begins;  // the first part of the character that was decomposed
  };
  bool lower_case_, strip_accents_, split_chinese_;
  std::vector<NormalizedCharacter> characters_, lowered_;
  std::vector<Part> parts_;
  std::vector<NormalizedCharacter> sources_;
};

}  // namespace teratron
