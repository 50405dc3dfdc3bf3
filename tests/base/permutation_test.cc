// Shuffles are orders, all equally likely as far as tests can see, and the same on every machine for ever.
#include "base/permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/trials.h"

namespace teratron::testing {
namespace {

RandomStream stream(std::uint64_t seed) { return {.seed = seed, .purpose = RandomPurpose::kShuffle}; }

std::vector<std::int64_t> order_of(const RandomPermutation& permutation) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < permutation.size(); ++i) order.push_back(permutation(i));
  return order;
}

// How far counts lie from even, in standard deviations of the chi-square statistic. Seeds are fixed: no chance of
// failing now and then.
double unevenness(const std::vector<double>& counts) {
  double total = 0, square = 0;
  for (const double count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  for (const double count : counts) square += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (square - freedom) / std::sqrt(2 * freedom);
}

TEST(RandomPermutation, HoldsEveryValueOnce) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 0; size < 200; ++size) sizes.push_back(size);
  for (std::int64_t near = -3; near < trials(100); ++near) sizes.push_back(RandomPermutation::kTableSize + near);
  for (int i = 0; i < trials(10); ++i)
    sizes.push_back(std::uniform_int_distribution<std::int64_t>(5000, 200000)(random));
  for (const std::int64_t side : {65, 71, 256}) {
    for (std::int64_t near = -1; near <= 1; ++near) sizes.push_back(side * side + near);
  }
  for (const std::int64_t size : sizes) {
    auto order = order_of(RandomPermutation(size, stream(random())));
    std::ranges::sort(order);
    for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i) << "size " << size;
  }
}

TEST(RandomPermutation, GoesThroughOrdersTooLargeToList) {
  const std::int64_t size = 1'000'000'000'007;
  const RandomPermutation permutation(size, stream(3));
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const std::int64_t value = permutation(size - 1 - i * 1009);
    ASSERT_TRUE(value >= 0 && value < size);
    ASSERT_TRUE(seen.insert(value).second);
  }
}

TEST(RandomPermutation, AllOrdersOfFourAreEquallyLikely) {
  std::map<std::vector<std::int64_t>, double> seen;
  for (std::uint64_t seed = 0; seed < 24000; ++seed) ++seen[order_of(RandomPermutation(4, stream(seed)))];
  ASSERT_EQ(seen.size(), 24U);
  std::vector<double> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  EXPECT_LT(std::abs(unevenness(counts)), 4);
}

TEST(RandomPermutation, PlacesAndNeighboursOfLargeOrdersAreEvenlySpread) {
  const std::int64_t size = RandomPermutation::kTableSize + 101;
  constexpr std::int64_t kBins = 41;
  std::vector<double> places(kBins), steps(kBins), columns(kBins);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomPermutation permutation(size, stream(seed));
    for (std::int64_t i = 0; i + 65 < size; ++i) {
      const std::int64_t value = permutation(i);
      const auto bin = [&](std::int64_t other) {
        return static_cast<std::size_t>((other - value + size) % size * kBins / size);
      };
      if (i < 200) ++places[static_cast<std::size_t>(value * kBins / size)];
      ++steps[bin(permutation(i + 1))];     // next in a row of the network's grid
      ++columns[bin(permutation(i + 64))];  // next in a column
    }
  }
  EXPECT_LT(std::abs(unevenness(places)), 4);
  EXPECT_LT(std::abs(unevenness(steps)), 4);
  EXPECT_LT(std::abs(unevenness(columns)), 4);
}

TEST(RandomPermutation, SeedsGiveOrdersOfTheirOwn) {
  for (const std::int64_t size : {std::int64_t{100}, RandomPermutation::kTableSize + 1}) {
    EXPECT_EQ(order_of(RandomPermutation(size, stream(1))), order_of(RandomPermutation(size, stream(1))));
    EXPECT_NE(order_of(RandomPermutation(size, stream(1))), order_of(RandomPermutation(size, stream(2))));
    RandomStream later = stream(1);
    later.step = 1;
    EXPECT_NE(order_of(RandomPermutation(size, stream(1))), order_of(RandomPermutation(size, later)));
  }
}

// A run resumed by a later version must go on with the same order, so these values never change.
TEST(RandomPermutation, OrdersAreTheSameForEver) {
  EXPECT_THAT(order_of(RandomPermutation(8, stream(42))), ::testing::ElementsAre(6, 3, 4, 7, 0, 5, 2, 1));
  const RandomPermutation large(1'000'000, stream(42));
  EXPECT_THAT((std::vector{large(0), large(1), large(999'999)}), ::testing::ElementsAre(546099, 830837, 603468));
}

}  // namespace
}  // namespace teratron::testing
