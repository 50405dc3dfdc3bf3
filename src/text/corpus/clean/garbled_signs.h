// Recognises UTF-8 that was read as Latin-1 or windows-1252. The rule, its character classes and its exceptions are
// those of ftfy 6.3 (Robyn Speer, Apache-2.0; ftfy/badness.py), for characters of these encodings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace teratron {

// Whether `text` has a run of two to four characters that is far more often garbled than written: a small accented
// letter before a currency sign, "Ã" before a space, a control character of Latin-1.
bool looks_garbled(std::u32string_view text);

constexpr bool is_continuation(std::uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Length of the UTF-8 sequence that begins with this byte; 1 if none of several bytes does.
constexpr std::size_t sequence_length(std::uint8_t lead) {
  if (lead < 0xC2 || lead > 0xF4) return 1;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// Number of characters at the beginning of `text` that look like consecutive sequences of UTF-8.
std::size_t shown_run(std::u32string_view text);

// Whether this character surely continues a sequence, since it is seldom written beside garbled text. No run begins
// after it: that would be the rest of a longer one.
bool is_surely_continuation(char32_t code);

}  // namespace teratron
