// WordPiece encoding on one thread, as in BERT: the normalized text is cut at white space and around punctuation, and
// each word is cut into tokens from its beginning, always the longest that fits. A word with a part that is no token,
// or with too many characters, is one token: [UNK].
//
// Runs of ASCII letters and numbers need no normalizer, and most of them are found in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/token_span.h"
#include "tokenizer/word_piece/bert_normalizer.h"
#include "tokenizer/word_piece/word_piece_table.h"

namespace teratron {

// An offset at or after `from` where `text` can be cut so that its parts have the tokens of the whole: before ASCII
// white space. The end of the text if there is none.
std::size_t next_cut_between_words(std::string_view text, std::size_t from);

// Holds the cache and scratch memory (some 4 MiB). The table must outlive it.
class WordPieceEncoder {
 public:
  explicit WordPieceEncoder(const WordPieceTable& table) : table_(table), normalizer_(table.model()) {}

  // Appends the tokens of `text`.
  void encode(std::string_view text, std::vector<std::int32_t>& out);
  // Appends the tokens of `text` (shorter than 4 GiB) with their bytes.
  void encode_with_offsets(std::string_view text, std::vector<TokenSpan>& out);

 private:
  template <class Sink>
  void encode_into(std::string_view text, Sink& sink);
  template <class Sink>
  void encode_normalized(std::string_view text, std::size_t begin, std::size_t end, Sink& sink);
  // The tokens of a normalized word. Valid until the next call.
  std::span<const std::int32_t> tokens_of(std::string_view word);
  // The tokens of a run of ASCII letters and numbers as written in the text, which may continue after it.
  std::span<const std::int32_t> tokens_of_ascii(std::string_view text, std::size_t length);
  std::span<const std::int32_t> find_tokens(std::string_view word);

  const WordPieceTable& table_;
  BertNormalizer normalizer_;
  WordCache cache_;
  std::vector<std::int32_t> found_;
  std::string word_;
};

}  // namespace teratron
