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
  PhiloxKey round_keys[kPhiloxRounds] = {};  // which no thread adds up: a kernel's parameters are operands
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
        counters(dropout.counters ? dropout.counters.as<const std::int32_t>() : nullptr) {
    PhiloxKey key = random.key();
    for (PhiloxKey& of_round : round_keys) {
      of_round = key;
      key = next_round_key(key);
    }
  }

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
    const PhiloxCounter words = drawn(block, step);
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
    factors(element, step(), to);
  }
  // factors() with a step() that was read before.
  template <int kCount>
  __device__ void factors(std::int64_t element, std::uint32_t step, float (&to)[kCount]) const {
    static_assert(kMaskBlock % kCount == 0);
    if constexpr (kCount == kMaskBlock) {  // by words: fewer instructions than by bits
      const PhiloxCounter words = drawn(element / kMaskBlock, step);
      const std::uint32_t least = threshold << 16;
      for (int word = 0; word < 4; ++word) {
        to[2 * word] = words[word] << 16 >= least ? scale : 0;
        to[2 * word + 1] = words[word] >= least ? scale : 0;
      }
    } else {
      const std::uint32_t bits = kept(element / kMaskBlock, step) >> (element % kMaskBlock);
      for (int i = 0; i < kCount; ++i) to[i] = (bits >> i) % 2 == 1 ? scale : 0;
    }
  }

 private:
  __device__ PhiloxCounter drawn(std::int64_t block, std::uint32_t step) const {
    PhiloxCounter words = random.counter(static_cast<std::uint64_t>(block));
    words[2] = step;
    for (const PhiloxKey& key : round_keys) words = philox_round(words, key);
    return words;
  }
};

// A gradient under a factor of the mask; a dropped one becomes 0, never -0.
__device__ inline float masked(float factor, float gradient) { return 0.0F + factor * gradient; }

// The mask of one row of activations. It holds what Dropout::counters said when it was made, so that a kernel which
// writes in between does not read them again.
struct RowMask {
  std::int64_t first_element = 0;
  std::uint32_t step = 0;

  // Factors of columns [j, j + kCount); all 1 where nothing is dropped.
  template <int kCount>
  __device__ void factors(const DropoutMask& mask, std::int64_t j, float (&to)[kCount]) const {
    if (mask.active()) return mask.factors(first_element + j, step, to);
    for (int e = 0; e < kCount; ++e) to[e] = 1;
  }
};

// The mask of activations: element (b, t, j) of a view [batch, tokens, hidden] is number row(b, t) + j.
struct ActivationMask {
  DropoutMask mask;
  std::int64_t sequence_length = 0, first_position = 0, hidden = 0;
  std::uint32_t tokens = 1;  // of the view, for row_mask()

  ActivationMask() = default;
  ActivationMask(const Dropout& dropout, std::int64_t hidden_size, std::int64_t tokens_of_view = 1)
      : mask(dropout),
        sequence_length(dropout.sequence_length),
        first_position(dropout.first_position),
        hidden(hidden_size),
        tokens(static_cast<std::uint32_t>(tokens_of_view)) {}

  __device__ std::int64_t row(std::int64_t b, std::int64_t t) const {
    return ((mask.first_sample() + b) * sequence_length + first_position + t) * hidden;
  }
  // Mask of row `number` of [batch x tokens, hidden].
  __device__ RowMask row_mask(std::int64_t number) const {
    if (!mask.active()) return {};
    const auto of_view = static_cast<std::uint32_t>(number);
    return {.first_element = row(of_view / tokens, of_view % tokens), .step = mask.step()};
  }
};

}  // namespace teratron::cuda
