// Text to tokens on one thread: splits, looks words up in the cache, merges the new ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/merge_table.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/bpe/word_merger.h"

namespace teratron {

// Holds the cache and scratch memory (some 4 MiB; more after words of megabytes). The table must outlive it.
class BpeEncoder {
 public:
  explicit BpeEncoder(const MergeTable& table) : merger_(table) {}

  // Appends the tokens of `text`.
  void encode(std::string_view text, std::vector<std::int32_t>& out);

 private:
  void append_word(std::string_view word, std::vector<std::int32_t>& out);

  WordMerger merger_;
  WordCache cache_;
};

}  // namespace teratron
