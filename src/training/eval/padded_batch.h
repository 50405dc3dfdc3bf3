// Texts of different lengths as a micro-batch of a BERT.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/micro_batch.h"

namespace teratron {

// Batch of sequences, padded to the longest.
struct PaddedBatch {
  std::vector<std::int32_t> ids, types, lengths;

  PaddedBatch(std::span<const std::vector<std::int32_t>> texts, std::span<const std::size_t> numbers) {
    std::size_t tokens = 0;
    for (const std::size_t number : numbers) tokens = std::max(tokens, texts[number].size());
    for (const std::size_t number : numbers) {
      const std::vector<std::int32_t>& text = texts[number];
      ids.insert(ids.end(), text.begin(), text.end());
      ids.resize(ids.size() + tokens - text.size());
      lengths.push_back(static_cast<std::int32_t>(text.size()));
    }
    types.resize(ids.size());
  }
  MicroBatch micro_batch() const {
    const std::size_t batch = lengths.size();
    return {.ids = ids,
            .token_types = types,
            .key_lengths = lengths,
            .batch = static_cast<std::int64_t>(batch),
            .tokens = static_cast<std::int64_t>(ids.size() / batch)};
  }
};

}  // namespace teratron
