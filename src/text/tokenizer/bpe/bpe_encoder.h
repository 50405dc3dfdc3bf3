// BPE encoding on one thread: the tables of a model, the merging of a word, and a cache of words.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/bpe/word_cache.h"

namespace teratron {

// A merge in 64 bits, ordered by rank: rank in the upper half, the merged token in the lower.
using RankedMerge = std::uint64_t;
constexpr RankedMerge kNoMerge = ~RankedMerge{0};

class MergeTable {
 public:
  explicit MergeTable(const BpeModel& model);  // the model is validated

  RankedMerge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = pair_key(left, right);
    for (std::size_t at = first_slot(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.merge;
      if (slot.key == kEmpty) return kNoMerge;
    }
  }

  static std::int32_t merged_token(RankedMerge merge) { return static_cast<std::int32_t>(merge & 0xFFFFFFFF); }
  // Writes the tokens of a word before any merge, at most one a byte: of its bytes, or of its characters
  // (SentencePiece). Returns their number.
  std::size_t split(std::string_view word, std::int32_t* tokens) const;

 private:
  std::int32_t byte_token(char byte) const { return byte_tokens_[static_cast<unsigned char>(byte)]; }
  std::size_t split_characters(std::string_view word, std::int32_t* tokens) const;
  void insert(std::uint64_t key, RankedMerge merge);

  struct Slot {
    std::uint64_t key;
    RankedMerge merge;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // no pair has this key: ids are not negative

  // Fibonacci hashing: the upper bits of the product depend on every bit of the key.
  std::size_t first_slot(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15) >> shift_; }

  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::array<std::int32_t, 256> byte_tokens_{};
  // The token of a character is found as the merge of this one, which is no token, and the character's code point.
  static constexpr std::int32_t kCharacter = -2;
  bool splits_characters_ = false;
};

// Merges the bytes of words. Holds scratch memory, so that no word allocates: one object per thread. The table must
// outlive it.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& table) : table_(&table) {}

  // Appends the tokens of `word`. UserError: a word of 2 GiB or more.
  void append(std::string_view word, std::vector<std::int32_t>& out);

 private:
  void append_short(std::string_view word, std::vector<std::int32_t>& out) const;
  void append_long(std::string_view word, std::vector<std::int32_t>& out);

  // A token of a long word, in a linked list; removed tokens keep their index without a merge.
  struct Node {
    std::int32_t token;
    std::uint32_t previous, next;
    RankedMerge merge;  // with the next token
  };
  void rank(std::uint32_t at);

  const MergeTable* table_;
  std::vector<std::int32_t> tokens_;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> queue_;  // a heap of rank and index, the lowest first
};

// Cuts text for SentencePiece's BPE, whose files merge within a whole text, into words that merge alike: no merge joins
// two tokens where the text is cut.
class WordJoints {
 public:
  explicit WordJoints(const BpeModel& model);  // the model is validated

  // The length in bytes of the first word of `text`, which is not empty.
  std::size_t first_word_length(std::string_view text) const {
    std::size_t end = 1;
    while (end < text.size() && is_joint(text[end - 1], text[end])) ++end;
    return end;
  }
  // An offset at or after `from` before an ASCII space and after another ASCII character, where words end. The end of
  // the text if there is none.
  std::size_t next_safe_cut(std::string_view text, std::size_t from) const;

 private:
  // Whether a merge joins a token that ends with `left` and one that begins with `right`, or both are of one character.
  bool is_joint(char left, char right) const {
    const auto bit = static_cast<unsigned char>(right);
    return (joints_[static_cast<unsigned char>(left)][bit / 64] >> (bit % 64) & 1) != 0;
  }

  std::array<std::array<std::uint64_t, 4>, 256> joints_{};
};

// Tables that encoding looks up. The model is validated, and must outlive the tables.
struct BpeTables {
  explicit BpeTables(const BpeModel& model);

  BpeSplitter splitter;
  MergeTable merges;
  WordJoints joints;
  std::unordered_map<std::string_view, std::int32_t> whole_words;  // empty unless the model ignores merges
};

// Holds the cache and scratch memory (some 4 MiB; more after words of megabytes). The tables must outlive it.
class BpeEncoder {
 public:
  explicit BpeEncoder(const BpeTables& tables) : tables_(&tables), merger_(tables.merges) {}

  // Appends the tokens of `text`.
  void encode(std::string_view text, std::vector<std::int32_t>& out);

 private:
  template <class FirstWordLength>
  void encode_words(std::string_view text, const FirstWordLength& first_word_length, std::vector<std::int32_t>& out);
  void append_word(std::string_view word, std::vector<std::int32_t>& out);

  const BpeTables* tables_;
  WordMerger merger_;
  WordCache cache_;
};

}  // namespace teratron
