// Properties of characters for BERT's normalizer (Devlin et al. 2018; Hugging Face's BertNormalizer), from utf8proc's
// tables, except for characters that differ in Hugging Face tokenizers 0.23: it takes categories from Unicode 8,
// decompositions and their order from Unicode 9, and lower case from Unicode 17. The code points that differ are:
// - some 900 in 43 ranges, younger than Unicode 8: ordinary characters to Hugging Face;
// - seven of these ranges, Unicode 9's: they are sorted among marks all the same;
// - U+166D and U+111C9, which are punctuation; U+1734 and U+1171E, which are marks that are dropped;
// - 55 capitals younger than utf8proc 2.8; U+0130, which becomes two characters.
// The answers were tested with utf8proc 2.8 (Unicode 15). The tables of 2.11 (Unicode 17) were compared, not run, and
// give the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace teratron::bert {

enum class Cleaned : std::uint8_t { kKept, kSpace, kDropped };

// Controls, format characters, private ones, U+0000 and U+FFFD are dropped; tab, line ends and all white space are
// spaces.
Cleaned clean(char32_t code);

// Whether the character is in the blocks that BERT calls Chinese. Hugging Face's differ from Google's by one block
// boundary: they exclude U+2B820 to U+2B91F.
bool is_ideograph(char32_t code);

// Whether the character is a word by itself: Unicode's punctuation, and all ASCII characters except letters, numbers,
// spaces and controls.
bool is_punctuation(char32_t code);

bool is_nonspacing_mark(char32_t code);

// The few characters that one character becomes.
struct Several {
  std::array<char32_t, 4> codes{};
  std::size_t count = 0;
  const char32_t* begin() const { return codes.data(); }
  const char32_t* end() const { return codes.data() + count; }
};

// The full canonical decomposition, not sorted with its neighbours.
Several decompose(char32_t code);

// The canonical combining class, by which marks after a letter are sorted.
int combining_class(char32_t code);

// U+0130 becomes two characters, all others one.
Several to_lower(char32_t code);

}  // namespace teratron::bert
