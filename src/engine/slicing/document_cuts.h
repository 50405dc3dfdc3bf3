// Cuts of micro-batches whose documents do not attend to one another. Each micro-batch gets cuts of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron::slicing {

// The slices to cut sequences into. Each has memory for a quarter more tokens than an even slice.
struct DocumentSlices {
  std::int64_t tokens = 0, unit = 1;  // of a sequence; cuts lie at multiples of `unit`, which divides `tokens`
  int count = 1;                      // at most tokens / unit
  double key_cost = 0;                // of each key that a token attends to; everything else of a token costs 1
  std::int64_t window = 0;            // most keys that a token attends to; 0: all of its document

  std::int64_t most_tokens() const;  // of a slice
};

// Tokens of each slice, a pure function of its arguments. `first_keys` [sequences, tokens]: the first token that each
// token attends to. First the most work of any slice is minimised; then, at most a hundredth above that, the number of
// keys that slices need from earlier ones. So cuts lie between documents where that costs no time. Time: O(first keys +
// 256^2), more for many slices.
std::vector<std::int64_t> cut_by_documents(const DocumentSlices& slices, std::span<const std::int32_t> first_keys);

}  // namespace teratron::slicing
