// Which pairs of tokens merge, how early, and into what: the table that encoding asks for every pair of neighbours.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"

namespace teratron {

// The outcome of one look-up in 64 bits, ordered by rank: rank in the upper half, the merged token in the lower.
using RankedMerge = std::uint64_t;
constexpr RankedMerge kNoMerge = ~RankedMerge{0};

class MergeTable {
 public:
  explicit MergeTable(const BpeModel& model);  // of a model that validate() accepts

  RankedMerge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = first_slot(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.merge;
      if (slot.key == kEmpty) return kNoMerge;
    }
  }

  static std::int32_t merged_token(RankedMerge merge) { return static_cast<std::int32_t>(merge & 0xFFFFFFFF); }
  std::int32_t byte_token(char byte) const { return byte_tokens_[static_cast<unsigned char>(byte)]; }

 private:
  struct Slot {
    std::uint64_t key;
    RankedMerge merge;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // no pair: ids are not negative

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  // Fibonacci hashing: the upper bits of the product depend on every bit of the key.
  std::size_t first_slot(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15) >> shift_; }

  std::vector<Slot> slots_;  // a power of two of them, at most half full; linear probing
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::array<std::int32_t, 256> byte_tokens_{};
};

}  // namespace teratron
