// What is drawn for BERT's samples: streams of RandomPurpose::kBertSamples.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/philox.h"

namespace teratron {

// Adding to them is safe, changing them changes the samples of every run.
enum class BertDraw : std::uint32_t {
  kLengths = 0,       // of segments; the index is the first sentence
  kOrder = 1,         // of an epoch's segments; the number is the epoch
  kPairs = 2,         // where a sample's segment is cut, which side comes first, what is cut off; its position
  kMasks = 3,         // which words of the sample at a position are masked
  kReplacements = 4,  // what stands in their place
};

// The stream of one thing, by its number in [0, 2^52).
inline RandomStream bert_stream(BertDraw what, std::uint64_t seed, std::int64_t number) {
  check(number >= 0 && number < std::int64_t{1} << 52, "bert_stream: number");
  return {.seed = seed,
          .purpose = RandomPurpose::kBertSamples,
          .stream = static_cast<std::uint32_t>(what) << 20 | static_cast<std::uint32_t>(number >> 32),
          .step = static_cast<std::uint32_t>(number)};
}

}  // namespace teratron
