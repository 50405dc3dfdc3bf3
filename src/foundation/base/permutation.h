// A random order of [0, size) with random access: a pure function of (size, random stream).
#pragma once

#include <cstdint>
#include <vector>

#include "base/philox.h"

namespace teratron {

// Small orders are shuffled in a table (Fisher-Yates), so that all orders are equally likely. Large ones take no
// memory: a Feistel network over pairs (left, right) with left * columns + right covering [0, size), whose round
// functions are Philox; the few values at or beyond `size` are skipped by iterating (Black and Rogaway, "Ciphers with
// arbitrary finite domains", 2002). Eight rounds: with fewer, neighbours in tests were not independent.
class RandomPermutation {
 public:
  static constexpr std::int64_t kTableSize = 1 << 12;

  RandomPermutation() = default;  // an order of nothing
  RandomPermutation(std::int64_t size, RandomStream stream);

  std::int64_t size() const { return size_; }
  std::int64_t operator()(std::int64_t index) const;  // index in [0, size)

 private:
  static constexpr std::uint64_t kRounds = 8;
  std::uint64_t encipher(std::uint64_t value) const;

  std::int64_t size_ = 0;
  RandomStream stream_;
  std::uint64_t rows_ = 0, columns_ = 0;
  std::vector<std::uint32_t> table_;
};

}  // namespace teratron
