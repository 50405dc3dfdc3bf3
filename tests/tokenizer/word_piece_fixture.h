// WordPiece vocabularies for tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tokenizer/tokenizer_fixture.h"

namespace teratron {

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

}  // namespace teratron
