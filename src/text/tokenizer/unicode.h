// The Unicode properties in GPT-2's splitter: \p{L}, \p{N} and \s (White_Space); ranges of characters.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace teratron {

enum class CharClass : std::uint8_t { kSymbol, kLetter, kNumber, kSpace };

// Unicode 16.0, two bits a code point, in blocks of 128 code points; equal blocks are stored once.
// scripts/make-unicode-tables writes unicode_tables.cc.
struct UnicodeTables {
  static constexpr char32_t kBlock = 128;
  static constexpr char32_t kEnd = 0x32400;  // from here on everything is a symbol
  static const std::array<std::uint8_t, kEnd / kBlock> kBlockOf;
  static const std::array<std::array<std::uint64_t, 4>, 208> kBlocks;
};

inline CharClass class_of(char32_t code) {
  if (code >= UnicodeTables::kEnd) return CharClass::kSymbol;
  const auto& block = UnicodeTables::kBlocks[UnicodeTables::kBlockOf[code / UnicodeTables::kBlock]];
  const char32_t within = code % UnicodeTables::kBlock;
  return static_cast<CharClass>((block[within / 32] >> (2 * (within % 32))) & 3);
}

struct CodeRange {
  char32_t first, last;
};

// Whether a character is in one of the ranges, which are sorted and apart.
inline bool is_within(std::span<const CodeRange> ranges, char32_t code) {
  const auto range = std::ranges::lower_bound(ranges, code, {}, &CodeRange::last);
  return range != ranges.end() && range->first <= code;
}

}  // namespace teratron
