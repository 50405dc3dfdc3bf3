// The mask of ops/backend.h's struct Dropout in kernels: one Philox block decides over 8 consecutive elements.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/philox.h"
#include "ops/backend.h"

namespace teratron::cuda {

constexpr int kMaskBlock = 8;  // elements of a Philox block

struct DropoutMask {
  RandomStream random;
  std::uint32_t threshold = 0;
  float scale = 1;
  std::int64_t given_sample = 0;
  const std::int32_t* counters = nullptr;  // Dropout::counters, in the device's memory

  DropoutMask() = default;
  explicit DropoutMask(const Dropout& dropout)
      : random(dropout.random),
        threshold(dropout.active() ? dropout.threshold() : 0),
        scale(dropout.active() ? dropout.scale() : 1),
        given_sample(dropout.first_sample),
        counters(dropout.counters ? dropout.counters.as<const std::int32_t>() : nullptr) {}

  __device__ std::int64_t first_sample() const { return counters != nullptr ? counters[1] : given_sample; }

  // Whether anything is dropped, for a whole launch. If not, nothing needs to be drawn.
  __device__ bool active() const { return threshold > 0; }

  __device__ std::uint32_t step() const {
    return counters != nullptr ? static_cast<std::uint32_t>(counters[0]) : random.step;
  }

  // Bit i is set where element 8 * block + i is kept.
  __device__ std::uint32_t kept(std::int64_t block) const { return kept(block, step()); }
  // kept() with a step() that was read before.
  __device__ std::uint32_t kept(std::int64_t block, std::uint32_t step) const {
    RandomStream drawn = random;
    drawn.step = step;
    const PhiloxCounter words = drawn.bits(static_cast<std::uint64_t>(block));
    const std::uint32_t least = threshold << 16;  // compares upper halves without taking them out
    std::uint32_t bits = 0;
    for (std::uint32_t word = 0; word < 4; ++word) {
      bits |= (words[word] << 16 >= least ? 1U : 0U) << (2 * word);
      bits |= (words[word] >= least ? 1U : 0U) << (2 * word + 1);
    }
    return bits;
  }

  // Factors of elements [element, element + kCount), all of one block: 0 or scale.
  template <int kCount>
  __device__ void factors(std::int64_t element, float (&to)[kCount]) const {
    static_assert(kMaskBlock % kCount == 0);
    const std::uint32_t bits = kept(element / kMaskBlock) >> (kCount == kMaskBlock ? 0 : element % kMaskBlock);
    for (int i = 0; i < kCount; ++i) to[i] = (bits >> i) % 2 == 1 ? scale : 0;
  }
};

// The mask of activations: element (b, t, j) of a view [batch, tokens, hidden] is number row(b, t) + j.
struct ActivationMask {
  DropoutMask mask;
  std::int64_t sequence_length = 0, first_position = 0, hidden = 0;

  ActivationMask() = default;
  ActivationMask(const Dropout& dropout, std::int64_t hidden_size)
      : mask(dropout),
        sequence_length(dropout.sequence_length),
        first_position(dropout.first_position),
        hidden(hidden_size) {}

  __device__ std::int64_t row(std::int64_t b, std::int64_t t) const {
    return ((mask.first_sample() + b) * sequence_length + first_position + t) * hidden;
  }
};

}  // namespace teratron::cuda
