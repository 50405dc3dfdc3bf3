// What BERT's normalizer asks about one character (Devlin et al. 2018; Hugging Face's BertNormalizer), answered from
// utf8proc's tables, but for the characters whose answer is another one in Hugging Face tokenizers 0.23: that takes
// categories from Unicode 8, decompositions and their order from Unicode 9, and lower case from Unicode 17.
// The answers were tested with utf8proc 2.8 (Unicode 15). By the tables of 2.11 (Unicode 17), which were compared and
// not run, they are the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace teratron::bert {

enum class Cleaned : std::uint8_t { kKept, kSpace, kDropped };

// Controls, format characters, private ones, U+0000 and U+FFFD are dropped; tab, line ends and all white space are
// spaces.
Cleaned clean(char32_t code);

// In the blocks that BERT calls Chinese. Hugging Face's are one block boundary off Google's: U+2B820 to U+2B91F are
// not.
bool is_ideograph(char32_t code);

// Whether the character is a word by itself: punctuation of Unicode, and all of ASCII that is not a letter, number,
// space or control.
bool is_punctuation(char32_t code);

bool is_nonspacing_mark(char32_t code);

// Few characters that one character becomes.
struct Several {
  std::array<char32_t, 4> codes{};
  std::size_t count = 0;
  const char32_t* begin() const { return codes.data(); }
  const char32_t* end() const { return codes.data() + count; }
};

// The canonical decomposition, all the way down; not sorted with what stands around it.
Several decompose(char32_t code);

// The canonical combining class: marks after a letter are sorted by it.
int combining_class(char32_t code);

// U+0130 becomes two characters, all others one.
Several to_lower(char32_t code);

}  // namespace teratron::bert
