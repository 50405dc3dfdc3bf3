// Philox4x32-10 against the known answers that its authors publish with Random123, and the numbers made from its bits.
#include "base/philox.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace teratron::testing {
namespace {

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The layout of the counter is part of what a seed promises: (index low, index high, step, purpose << 24 | stream).
TEST(RandomStream, PutsItsFieldsIntoTheCounterAndTheSeedIntoTheKey) {
  const RandomStream stream{
      .seed = 0x299f31d0a4093822, .purpose = RandomPurpose::kResidualDropout, .stream = 0x707344, .step = 0x13198a2e};
  EXPECT_EQ(stream.bits(0x85a308d3243f6a88), (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, EveryFieldLeadsToOtherBits) {
  const RandomStream stream{.seed = 1, .purpose = RandomPurpose::kInit, .stream = 2, .step = 3};
  std::set<PhiloxCounter> seen = {stream.bits(5), stream.bits(6), stream.bits(5 + (std::uint64_t{1} << 32))};
  RandomStream other = stream;
  other.seed = 1 + (std::uint64_t{1} << 32);
  seen.insert(other.bits(5));
  other = stream;
  other.purpose = RandomPurpose::kShuffle;
  seen.insert(other.bits(5));
  other = stream;
  other.stream = 3;
  seen.insert(other.bits(5));
  other = stream;
  other.step = 4;
  seen.insert(other.bits(5));
  EXPECT_EQ(seen.size(), 7U);
}

TEST(Uniform, NeverReachesZeroOrOneAndIsSpacedEvenly) {
  EXPECT_EQ(uniform_from_bits(0), 0x1p-33);
  EXPECT_EQ(uniform_from_bits(0xffffffff), 1 - 0x1p-33);
  EXPECT_EQ(uniform_from_bits(0x80000000), 0.5 + 0x1p-33);
}

TEST(Normal, IsFiniteAtTheExtremesAndRight) {
  const auto [largest, zero] = normal_from_bits(0, 0);
  EXPECT_NEAR(largest, std::sqrt(66 * std::log(2.0)), 1e-12);  // sqrt(-2 log 2^-33)
  EXPECT_NEAR(zero, 0, 1e-8);
  const auto [a, b] = normal_from_bits(0xffffffff, 0x40000000);
  EXPECT_NEAR(std::hypot(a, b), std::sqrt(2 * 0x1p-33), 1e-12);
}

TEST(RandomSequence, GivesTheStreamsWordsInOrder) {
  const RandomStream stream{.seed = 3, .purpose = RandomPurpose::kSampling};
  RandomSequence sequence(stream, 10);
  for (std::uint64_t index = 10; index < 13; ++index) {
    for (const std::uint32_t word : stream.bits(index)) EXPECT_EQ(sequence.next_u32(), word);
  }
}

// 60000 draws among 6: each count deviates by sqrt(n p (1 - p)) = 91; 5 deviations.
TEST(RandomSequence, BelowIsUniform) {
  RandomSequence sequence({.seed = 4, .purpose = RandomPurpose::kShuffle});
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < 60000; ++i) ++counts[sequence.below(6)];
  ASSERT_EQ(counts.size(), 6U);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10000, 460) << value;
}

TEST(RandomSequence, BelowWorksForOneAndForBoundsBeyondHalfTheRange) {
  RandomSequence sequence({.seed = 4, .purpose = RandomPurpose::kShuffle});
  const std::uint64_t bound = (std::uint64_t{1} << 63) + 12345;  // nearly every second draw is rejected
  bool upper_half = false;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(sequence.below(1), 0U);
    const std::uint64_t value = sequence.below(bound);
    ASSERT_LT(value, bound);
    upper_half = upper_half || value > bound / 2;
  }
  EXPECT_TRUE(upper_half);
}

}  // namespace
}  // namespace teratron::testing
