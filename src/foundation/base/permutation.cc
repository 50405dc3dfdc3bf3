#include "base/permutation.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

std::vector<std::uint32_t> shuffled_table(std::int64_t size, RandomStream stream) {
  std::vector<std::uint32_t> table(static_cast<std::size_t>(size));
  std::iota(table.begin(), table.end(), 0U);
  RandomSequence random(stream);
  for (std::size_t left = table.size(); left > 1; --left) std::swap(table[left - 1], table[random.below(left)]);
  return table;
}

}  // namespace

RandomPermutation::RandomPermutation(std::int64_t size, RandomStream stream) : size_(size), stream_(stream) {
  check(size >= 0 && size < (std::int64_t{1} << 62), "RandomPermutation: size");
  if (size <= kTableSize) {
    table_ = shuffled_table(size, stream);
    return;
  }
  // The squarest grid that covers the size adds fewer than `rows_` values to skip.
  rows_ = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
  columns_ = (static_cast<std::uint64_t>(size) + rows_ - 1) / rows_;
}

// One pass of the network over [0, rows * columns). Each step adds a function of one half to the other half and can be
// undone, so the whole is one to one.
std::uint64_t RandomPermutation::encipher(std::uint64_t value) const {
  // Halves and their limits are below 2^32, so 32 random bits scaled to [0, limit) suffice without a division.
  const auto add = [this](std::uint64_t half, std::uint64_t limit, std::uint64_t round, std::uint64_t other) {
    const std::uint64_t random = stream_.bits((round << 32) | other)[0];
    const std::uint64_t sum = half + ((random * limit) >> 32);
    return sum < limit ? sum : sum - limit;
  };
  std::uint64_t left = value / columns_, right = value % columns_;
  for (std::uint64_t round = 0; round < kRounds; round += 2) {
    left = add(left, rows_, round, right);
    right = add(right, columns_, round + 1, left);
  }
  return left * columns_ + right;
}

std::int64_t RandomPermutation::operator()(std::int64_t index) const {
  check(index >= 0 && index < size_, "RandomPermutation: index");
  if (!table_.empty()) return table_[static_cast<std::size_t>(index)];
  auto value = static_cast<std::uint64_t>(index);
  do {
    value = encipher(value);
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

}  // namespace teratron
