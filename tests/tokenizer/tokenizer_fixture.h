// Shared by the tokenizer's tests: the shared data, random bytes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>

#include "base/files/file.h"
#include "base/philox.h"
#include "base/temporary_folder.h"
#include "tokenizer/bpe/bpe_trainer.h"
#include "tokenizer/tokenizer.h"

namespace teratron::testing {

inline std::filesystem::path shared_data() { return std::filesystem::path(TERATRON_SOURCE_DIR) / "../shared/data"; }

inline std::string fnv1a(std::span<const std::byte> bytes) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  return fmt::format("{:016x}", value);
}

inline RandomSequence random_sequence(std::uint64_t seed) { return RandomSequence(RandomStream{.seed = seed}); }

// `length` bytes from `alphabet`; from all 256 where that is empty.
inline std::string random_bytes(RandomSequence& random, std::size_t length, std::string_view alphabet = {}) {
  std::string bytes;
  for (std::size_t i = 0; i < length; ++i) {
    bytes.push_back(alphabet.empty() ? static_cast<char>(random.below(256)) : alphabet[random.below(alphabet.size())]);
  }
  return bytes;
}

// A small tokenizer of English-like text with "<|endoftext|>" as the last of its ids.
inline Tokenizer small_tokenizer(std::int64_t vocab_size = 300) {
  const std::string_view text =
      "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a "
      "wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood, "
      "this truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful "
      "property of some one or other of their daughters.";
  return Tokenizer(train_bpe({&text, 1}, {.vocab_size = vocab_size}));
}

}  // namespace teratron::testing
