// BPE's inner step (Sennrich et al. 2016): the bytes of a word, joined pair by pair, always the pair of lowest rank and
// of several such pairs the leftmost, until no neighbours merge.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/merge_table.h"

namespace teratron {

// Holds scratch memory, so that no word allocates: one object a thread. The table must outlive it.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& table) : table_(&table) {}

  // Appends the tokens of `word`. UserError: a word of 2 GiB or more.
  void append(std::string_view word, std::vector<std::int32_t>& out);

 private:
  void append_short(std::string_view word, std::vector<std::int32_t>& out) const;
  void append_long(std::string_view word, std::vector<std::int32_t>& out);

  // A token of a long word, in a linked list; removed tokens keep their place with no merge.
  struct Node {
    std::int32_t token;
    std::uint32_t previous, next;
    RankedMerge merge;  // with the next token
  };
  void rank(std::uint32_t at);

  const MergeTable* table_;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> queue_;  // a heap of rank and place, the lowest first
};

}  // namespace teratron
