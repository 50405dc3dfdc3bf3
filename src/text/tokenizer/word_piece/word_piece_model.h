// The model of a WordPiece tokenizer (Schuster and Nakajima 2012; Devlin et al. 2018, section 3): the tokens, and the
// preparation of text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

struct WordPieceModel {
  std::vector<std::string> tokens;  // token id -> its text; one that continues a word begins with `prefix`
  bool lower_case = true;           // uncased: all letters in lower case
  bool strip_accents = true;        // decompose characters (NFD) and drop their marks
  bool split_chinese = true;        // each ideograph is a word by itself
  bool clean_up = true;             // decode() omits the space before marks such as "." and "'s"
  std::int32_t unknown = -1, pad = -1, classify = -1, separate = -1, mask = -1;  // [UNK] [PAD] [CLS] [SEP] [MASK]
  std::vector<std::int32_t> special;  // ascending ids of those five and of others that stand for no text
  std::string prefix = "##";
  int max_word_characters = 100;  // a longer word is [UNK]

  bool continues_word(std::int32_t id) const { return tokens[static_cast<std::size_t>(id)].starts_with(prefix); }
  bool operator==(const WordPieceModel&) const = default;
};

// UserError, naming `source`, unless all five special tokens exist and are in `special`, and no token is empty, not
// UTF-8, of two lines or listed twice.
void validate(const WordPieceModel& model, std::string_view source);

// A hash for Tokenizer::hash.
std::string hash_of(const WordPieceModel& model);

}  // namespace teratron
