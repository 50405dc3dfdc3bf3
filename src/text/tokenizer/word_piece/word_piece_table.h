// Looks up the longest token of a WordPiece tokenizer at the beginning of a word or of its rest.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

// A tree of bytes whose edges are in one hash table. Safe to read from many threads.
class WordPieceTable {
 public:
  // The model must outlive the table.
  explicit WordPieceTable(const WordPieceModel& model);

  struct Match {
    std::int32_t id = -1;
    std::size_t length = 0;  // bytes of the word; 0: no token
  };
  // The longest token at the beginning of `rest`, of those that begin a word or of those that continue one.
  Match longest(std::string_view rest, bool continues) const;

  const WordPieceModel& model() const { return *model_; }
  // The token of an ASCII character that is a word by itself.
  std::int32_t token_of(unsigned char byte) const { return ascii_[byte]; }

 private:
  struct Edge {
    std::uint64_t key = kEmpty;  // the parent in the upper bits, the byte in the lower eight
    std::int32_t child = 0;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr std::int32_t kBegins = 0, kContinues = 1;  // the two roots

  std::size_t slot_of(std::uint64_t key) const;
  std::int32_t child_of(std::int32_t node, char byte) const;
  void insert(std::int32_t root, std::string_view text, std::int32_t id);

  const WordPieceModel* model_;
  std::vector<std::int32_t> id_of_node_;
  std::vector<Edge> edges_;  // a power of two, at most half full; linear probing
  int shift_ = 0;
  std::array<std::int32_t, 128> ascii_{};
};

}  // namespace teratron
