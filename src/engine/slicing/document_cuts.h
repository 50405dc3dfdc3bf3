// Cuts of micro-batches whose documents do not see one another: each micro-batch gets cuts of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron::slicing {

// Slices of sequences of `tokens` tokens, with memory for a quarter more tokens each than even ones have.
struct DocumentSlices {
  std::int64_t tokens = 0, unit = 1;  // cuts lie at multiples of `unit`, which divides `tokens`
  int count = 1;                      // at most tokens / unit
  double key_cost = 0;                // of a key that a token sees, where all else that a token costs is 1
  std::int64_t window = 0;            // keys that a token sees at most; 0: all of its document

  std::int64_t most_tokens() const;  // of any slice
};

// Tokens of each slice, a pure function of its arguments. `first_keys` [sequences, tokens]: the first token that each
// token sees. The longest-working slice works as little as it can, to a hundredth; then cuts carry as few keys over as
// they can. So they lie between documents where that costs nothing. Time: O(first keys + 256^2), more for many slices.
std::vector<std::int64_t> cut_by_documents(const DocumentSlices& slices, std::span<const std::int32_t> first_keys);

}  // namespace teratron::slicing
