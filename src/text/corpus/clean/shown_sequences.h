// Characters that look like the bytes of UTF-8, in windows-1252 or another one-byte encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace teratron {

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
