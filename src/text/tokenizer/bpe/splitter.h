// Splitters of byte-level BPE: cut text into the words that are merged within.
//
// GPT-2's (Radford et al. 2019; the pattern is OpenAI's):
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Llama 3's; Qwen 2's has \p{N} for \p{N}{1,3}:
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
//   \s+(?!\S)|\s+
// SmolLM's: each digit is a word; GPT-2's pattern cuts the text between digits, as if it ended there.
//
// The words cover the text without gaps. The classes are those of Unicode 16.0 (unicode.h); a byte that is not part of
// valid UTF-8 counts as a symbol (the patterns' [^\s\p{L}\p{N}]), which the patterns themselves leave open.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tokenizer/bpe/bpe_model.h"

namespace teratron {

namespace detail {

std::size_t general_word_length(std::string_view text);
std::size_t general_word_length_beside_digits(std::string_view text);
std::size_t general_word_length_with_mark(std::string_view text, int most_digits);

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

// The length of a word of ASCII letters that begin at `begin`; 0 if the word has none or needs a closer look. Most
// words are a space and some ASCII letters; they are found eight bytes at a time.
inline std::size_t plain_word_length(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end + 8 <= text.size()) {
    const std::size_t letters = leading_letters(text.data() + end);
    end += letters;
    if (letters == 8) continue;
    return end > begin && static_cast<unsigned char>(text[end]) < 0x80 ? end : 0;
  }
  return 0;
}

}  // namespace detail

// The length in bytes of the first word of `text`, which is not empty; `kSplitter` is one of byte-level BPE.
template <BpeSplitter kSplitter = BpeSplitter::kGpt2>
std::size_t first_word_length(std::string_view text) {
  std::size_t begin = text[0] == ' ' ? 1 : 0;
  constexpr bool kTakesMark = kSplitter == BpeSplitter::kLlama3 || kSplitter == BpeSplitter::kQwen2;
  if constexpr (kTakesMark) {
    // Any symbol may stand before letters, or white space that is no line end; an apostrophe may begin a contraction.
    const char first = text[0];
    begin = (first >= ' ' && first < '0' && first != '\'') || first == '\t' || first == '_' ? 1 : 0;
  }
  if (const std::size_t length = detail::plain_word_length(text, begin)) return length;
  if constexpr (kTakesMark) {
    return detail::general_word_length_with_mark(text, kSplitter == BpeSplitter::kLlama3 ? 3 : 1);
  }
  return kSplitter == BpeSplitter::kDigits ? detail::general_word_length_beside_digits(text)
                                           : detail::general_word_length(text);
}

// An offset at or after `from` where `text` can be cut so that the two parts split into the same words as the whole:
// where ASCII white space follows another ASCII character (a space or tab if symbols take line ends with them). The end
// of the text if there is none.
std::size_t next_safe_cut(std::string_view text, std::size_t from, BpeSplitter splitter = BpeSplitter::kGpt2);

}  // namespace teratron
