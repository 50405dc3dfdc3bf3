// GPT-2's splitter (Radford et al. 2019; the pattern is OpenAI's): cuts text into the words that BPE merges within.
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// The words cover the text without gaps. The classes are those of Unicode 16.0 (unicode.h); a byte that is not part of
// valid UTF-8 counts as a symbol (the pattern's [^\s\p{L}\p{N}]), which the pattern itself leaves open.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace teratron {

namespace detail {

std::size_t general_word_length(std::string_view text);

// Number of ASCII letters at the beginning of 8 bytes.
inline std::size_t leading_letters(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  // Lower case without the top bits, so that the sums below stay within their bytes.
  const std::uint64_t lower = (word | (kEach * 0x20)) & (kEach * 0x7F);
  const std::uint64_t at_least_a = lower + kEach * (0x80 - 'a');
  const std::uint64_t above_z = lower + kEach * (0x7F - 'z');
  const std::uint64_t others = ~(at_least_a & ~above_z & ~word) & (kEach * 0x80);
  return static_cast<std::size_t>(std::countr_zero(others)) / 8;  // countr_zero(0) is 64
}

}  // namespace detail

// The length in bytes of the first word of `text`, which is not empty.
inline std::size_t first_word_length(std::string_view text) {
  // Most words are a space and some ASCII letters; they are found eight bytes at a time.
  const std::size_t begin = text[0] == ' ' ? 1 : 0;
  std::size_t end = begin;
  while (end + 8 <= text.size()) {
    const std::size_t letters = detail::leading_letters(text.data() + end);
    end += letters;
    if (letters == 8) continue;
    if (end > begin && static_cast<unsigned char>(text[end]) < 0x80) return end;
    break;
  }
  return detail::general_word_length(text);
}

// An offset at or after `from` where `text` can be cut so that the two parts split into the same words as the whole:
// where ASCII white space follows another ASCII character. The end of the text if there is none.
std::size_t next_safe_cut(std::string_view text, std::size_t from);

}  // namespace teratron
