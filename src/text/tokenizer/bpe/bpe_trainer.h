// Training of a byte-level BPE vocabulary: start from the 256 bytes and join the most frequent pair of neighbouring
// tokens, again and again (Sennrich et al. 2016, section 3.2), within the words of GPT-2's splitter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"

namespace teratron {

// Progress: words of all texts are counted, then pairs are joined, more slowly at first than later.
struct BpeTrainingProgress {
  std::size_t bytes_counted = 0, bytes = 0;
  std::int64_t tokens = 0, vocab_size = 0;  // made so far, and the maximum
};

struct BpeTrainingOptions {
  std::int64_t vocab_size = 4096;                            // with the 256 bytes and the special tokens
  std::int64_t minimum_count = 2;                            // rarer pairs are not joined
  std::vector<std::string> special = {"<|endoftext|>"};      // get the last ids, in this order
  std::function<void(const BpeTrainingProgress&)> progress;  // called repeatedly
};

// Deterministic: of the pairs with the highest count, the one with the smallest (left id, right id) is joined. Bytes
// have GPT-2's ids (0 is '!'); joined tokens follow in the order they were made. There are fewer than vocab_size tokens
// if no pair is left that occurs minimum_count times. Texts are independent: no word spans two of them. UserError: no
// text at all, a vocab_size below 256 + special tokens, or special tokens that are empty or repeated.
BpeModel train_bpe(std::span<const std::string_view> texts, const BpeTrainingOptions& options);

}  // namespace teratron
