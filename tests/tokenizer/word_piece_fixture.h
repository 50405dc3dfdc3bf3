// WordPiece vocabularies and checksums for tests.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {

// [PAD], [UNK], [CLS], [SEP], [MASK] with ids 0 to 4, then these tokens.
inline WordPieceModel word_piece_of(const std::vector<std::string>& tokens) {
  WordPieceModel model;
  model.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  model.tokens.insert(model.tokens.end(), tokens.begin(), tokens.end());
  model.pad = 0;
  model.unknown = 1;
  model.classify = 2;
  model.separate = 3;
  model.mask = 4;
  model.special = {0, 1, 2, 3, 4};
  return model;
}

// Some 40 tokens of up to 4 of these characters, at random cased or not.
inline Tokenizer random_word_piece(RandomSequence& random, std::string_view alphabet) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 40; ++i) {
    const std::string token = (random.below(2) == 0 ? "" : "##") + random_bytes(random, 1 + random.below(4), alphabet);
    if (std::ranges::find(tokens, token) == tokens.end()) tokens.push_back(token);
  }
  WordPieceModel model = word_piece_of(tokens);
  model.lower_case = random.below(2) == 0;
  model.strip_accents = random.below(2) == 0;
  model.split_chinese = random.below(2) == 0;
  return Tokenizer(model);
}

// As zlib's: the lowest bit first.
inline std::uint32_t crc32(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> values{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) * 0xEDB88320);
      values[byte] = value;
    }
    return values;
  }();
  std::uint32_t sum = 0xFFFFFFFF;
  for (const char byte : bytes) sum = (sum >> 8) ^ table[(sum ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~sum;
}

}  // namespace teratron::testing
