// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011). A number is a pure function of seed, purpose
// and position. It depends neither on the layout nor on earlier draws.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace teratron {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Purpose of a draw. It is part of the counter: draws for different purposes never collide. Runs repeat only while the
// values stay, so add at the end.
enum class RandomPurpose : std::uint32_t {
  kInit = 0,
  kEmbeddingDropout = 1,
  kAttentionDropout = 2,
  kResidualDropout = 3,  // after attention: sub-layer 0; after the MLP: sub-layer 1
  kShuffle = 4,
  kSampling = 5,
  kSplit = 6,
  kBertSamples = 7,
  kClassifierDropout = 8,
  kMomentRounding = 9,  // of 16-bit optimizer state
};

constexpr std::uint32_t kPhiloxMultiplierA = 0xD2511F53U, kPhiloxMultiplierB = 0xCD9E8D57U;
constexpr std::uint32_t kPhiloxWeylA = 0x9E3779B9U, kPhiloxWeylB = 0xBB67AE85U;

constexpr int kPhiloxRounds = 10;

constexpr PhiloxCounter philox_round(const PhiloxCounter& counter, const PhiloxKey& key) {
  const std::uint64_t a = std::uint64_t{kPhiloxMultiplierA} * counter[0];
  const std::uint64_t b = std::uint64_t{kPhiloxMultiplierB} * counter[2];
  return {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
}

constexpr PhiloxKey next_round_key(const PhiloxKey& key) { return {key[0] + kPhiloxWeylA, key[1] + kPhiloxWeylB}; }

constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    counter = philox_round(counter, key);
    key = next_round_key(key);
  }
  return counter;
}

// Independent stream of random numbers: (seed, purpose, stream, index) -> 128 bits.
struct RandomStream {
  std::uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::kInit;
  std::uint32_t stream = 0;  // e.g. a layer, a parameter, an epoch; at most 2^24 - 1
  std::uint32_t step = 0;

  constexpr PhiloxCounter counter(std::uint64_t index) const {
    return {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), step,
            (static_cast<std::uint32_t>(purpose) << 24) | stream};
  }
  constexpr PhiloxKey key() const { return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}; }
  constexpr PhiloxCounter bits(std::uint64_t index) const { return philox4x32(counter(index), key()); }
};

// Uniform in (0, 1) from 32 random bits: never 0, never 1.
constexpr double uniform_from_bits(std::uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

// Two independent standard normal values from 64 random bits (Box-Muller).
inline std::array<double, 2> normal_from_bits(std::uint32_t a, std::uint32_t b) {
  const double radius = std::sqrt(-2.0 * std::log(uniform_from_bits(a)));
  const double angle = 2.0 * std::numbers::pi * uniform_from_bits(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Sequence of numbers of one stream, for shuffles and sampling.
class RandomSequence {
 public:
  explicit RandomSequence(RandomStream stream, std::uint64_t start = 0) : stream_(stream), index_(start) {}
  std::uint32_t next_u32() {
    if (used_ == 4) {
      block_ = stream_.bits(index_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  double uniform() { return uniform_from_bits(next_u32()); }
  // Uniform in [0, bound), exactly (rejection). bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % bound;
    while (true) {
      const std::uint64_t high = next_u32();
      const std::uint64_t value = (high << 32) | next_u32();
      if (value < limit) return value % bound;
    }
  }

 private:
  RandomStream stream_;
  std::uint64_t index_;
  PhiloxCounter block_{};
  std::size_t used_ = 4;
};

}  // namespace teratron
