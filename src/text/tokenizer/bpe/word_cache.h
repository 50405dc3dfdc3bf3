// A cache of words and their tokens. In English more than nineteen words of twenty are found here, at the cost of one
// cache line.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace teratron {

class WordCache {
 public:
  static constexpr std::size_t kLongestWord = 23;  // bytes
  static constexpr std::size_t kMostTokens = 9;

  // A word's bytes, padded with zeros, and its length in the last byte, so no two words have the same key.
  struct Key {
    std::array<std::uint64_t, 3> words;
    // Not `= default`: that calls memcmp, which would read just written words from memory.
    bool operator==(const Key& other) const {
      return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1]) | (words[2] ^ other.words[2])) == 0;
    }
  };

  struct alignas(64) Entry {
    Key key{};  // all zero: empty, since no word has length 0
    std::array<std::int32_t, kMostTokens> tokens;
    std::int32_t count;
  };

  WordCache() : entries_(kEntries) {}

  // The key of the first `length` bytes of `text`; length in [1, kLongestWord].
  static Key key_of(std::string_view text, std::size_t length) {
    Key key{};
    if (text.size() >= sizeof key) {
      // Whole machine words, masked to the first `length` bytes: no branch on the length.
      Key mask;
      std::memcpy(&key, text.data(), sizeof key);
      std::memcpy(&mask, kMask.data() + sizeof key - length, sizeof mask);
      for (std::size_t i = 0; i < 3; ++i) key.words[i] &= mask.words[i];
    } else {
      std::memcpy(&key, text.data(), length);
    }
    key.words[2] |= std::uint64_t{length} << 56;
    return key;
  }

  // The entry of a key, which may hold another word or none; the caller then replaces it.
  Entry& entry(const Key& key) {
    // Distinct odd multipliers, so that equal words at different positions do not cancel.
    const std::uint64_t mixed =
        (key.words[0] * 0x9E3779B97F4A7C15) ^ (key.words[1] * 0xC2B2AE3D27D4EB4F) ^ (key.words[2] * 0x165667B19E3779F9);
    return entries_[((mixed ^ (mixed >> 32)) * 0x9E3779B97F4A7C15) >> (64 - kEntryBits)];
  }

 private:
  static constexpr int kEntryBits = 16;  // 4 MiB
  static constexpr std::size_t kEntries = std::size_t{1} << kEntryBits;
  static constexpr std::array<std::uint8_t, 2 * sizeof(Key)> kMask = [] {
    std::array<std::uint8_t, 2 * sizeof(Key)> mask{};
    for (std::size_t i = 0; i < sizeof(Key); ++i) mask[i] = 0xFF;
    return mask;
  }();

  std::vector<Entry> entries_;
};

}  // namespace teratron
