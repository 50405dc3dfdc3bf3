// The 16-bit floating point formats, over all of their values, against a definition by the nearest value.
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/float_types.h"

namespace teratron::testing {
namespace {

struct Format {
  const char* name;
  std::uint16_t infinity;  // its bits
  int exponent_bits, mantissa_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

// The value of non-negative bits, from the definition of a binary floating point format; infinity's bits give the
// number that would come after the largest finite one.
double value_of(const Format& format, std::uint32_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(bits >> format.mantissa_bits);
  const double mantissa = std::ldexp(bits & ((1U << format.mantissa_bits) - 1), -format.mantissa_bits);
  return exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1 + mantissa, exponent - bias);
}

// Round to nearest, ties to even bits. The midpoints of neighbours are exact in double.
std::uint16_t nearest(const Format& format, float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(double{value});
  std::uint32_t low = 0, high = format.infinity;  // value_of(low) <= magnitude, the answer is low or low + 1
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value_of(format, middle) <= magnitude ? low : high) = middle;
  }
  if (magnitude >= value_of(format, format.infinity)) return static_cast<std::uint16_t>(sign | format.infinity);
  const double midpoint = (value_of(format, low) + value_of(format, low + 1)) / 2;
  const bool up = magnitude > midpoint || (magnitude == midpoint && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (low + (up ? 1 : 0)));
}

class SixteenBits : public ::testing::TestWithParam<Format> {};

TEST_P(SixteenBits, EveryPatternWidensToItsValueAndNarrowsBackToItself) {
  const Format& format = GetParam();
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const std::uint32_t magnitude = bits & 0x7fffU;
    const float value = format.widen(bits);
    if (magnitude > format.infinity) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_GT(format.narrow(value) & 0x7fffU, format.infinity) << pattern;
      continue;
    }
    const double expected = magnitude == format.infinity ? INFINITY : value_of(format, magnitude);
    ASSERT_EQ(std::abs(value), expected) << pattern;
    ASSERT_EQ(std::signbit(value), bits > 0x7fff) << pattern;
    ASSERT_EQ(format.narrow(value), bits) << pattern;
  }
}

TEST_P(SixteenBits, NarrowingRoundsToNearestEvenAtAndAroundEveryMidpoint) {
  const Format& format = GetParam();
  for (std::uint32_t bits = 0; bits < format.infinity; ++bits) {
    const auto midpoint = static_cast<float>((value_of(format, bits) + value_of(format, bits + 1)) / 2);
    for (const float value : {std::nextafter(midpoint, 0.0F), midpoint, std::nextafter(midpoint, INFINITY)}) {
      ASSERT_EQ(format.narrow(value), nearest(format, value)) << value;
      ASSERT_EQ(format.narrow(-value), nearest(format, -value)) << -value;
    }
  }
}

TEST_P(SixteenBits, NarrowingAnyFloatIsTheNearestValue) {
  const Format& format = GetParam();
  std::mt19937 random(1);
  for (int i = 0; i < 300000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) {
      ASSERT_GT(format.narrow(value) & 0x7fffU, format.infinity);
    } else {
      ASSERT_EQ(format.narrow(value), nearest(format, value)) << value;
    }
  }
}

TEST_P(SixteenBits, NaNStaysNaNThoughItsUpperBitsAreThoseOfInfinity) {
  const auto barely_nan = std::bit_cast<float>(0x7f800001U);
  EXPECT_GT(GetParam().narrow(barely_nan) & 0x7fffU, GetParam().infinity);
  EXPECT_EQ(GetParam().narrow(INFINITY), GetParam().infinity);
  EXPECT_EQ(GetParam().narrow(std::numeric_limits<float>::max()), GetParam().infinity);
}

// Over all 65536 random numbers: the mean of what a value becomes is the value, and it becomes a neighbour.
TEST(Bf16ByChance, KeepsTheMean) {
  for (const float value : {1.0F, 1.00390625F, 1.0001F, -3.14159F, 1e-3F, -7e30F, 1e-39F}) {
    double sum = 0;
    for (std::uint32_t random = 0; random < 65536; ++random) {
      const float stored = bf16_by_chance(std::bit_cast<std::uint32_t>(value), random | 0xABCD0000U);
      EXPECT_LE(std::abs(double{stored} - double{value}), std::max(std::abs(double{value}) * 0x1p-7, 0x1p-133));
      sum += double{stored} / 65536;
    }
    EXPECT_NEAR(sum, double{value}, std::abs(double{value}) * 1e-12) << value;
  }
}

TEST(Bf16ByChance, LeavesWhatIsNotFinite) {
  for (const std::uint32_t random : {0U, 0xFFFFU}) {
    const float infinity = bf16_by_chance(0xFF800000U, random);
    EXPECT_EQ(infinity, -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(float{bf16_by_chance(0x7FFFFFFFU, random)}));
    EXPECT_TRUE(std::isnan(float{bf16_by_chance(0x7F800001U, random)}));
  }
}

// Every lower half beside upper halves of all kinds: the upper half is what rounding gives, and the halves together are
// the value to the last bit, or the one next to it where it was midway; split again, they stay as they are.
TEST(SplitFloat, IsTheNearestBf16AndTheRest) {
  for (const std::uint32_t upper : {0U, 1U, 0x3F80U, 0x3F81U, 0x7F7EU, 0x7F7FU, 0x8000U, 0xC2F6U, 0xC2F7U, 0xFF7FU}) {
    for (std::uint32_t lower = 0; lower < 0x10000U; ++lower) {
      const std::uint32_t bits = upper << 16 | lower;
      const SplitFloat halves = split_float(bits);
      ASSERT_EQ(halves.nearest.bits, float_to_bf16(std::bit_cast<float>(bits))) << bits;
      const std::uint32_t joined = joined_bits(halves);
      const bool is_midway = lower == 0x8000U;
      ASSERT_EQ(joined, is_midway ? bits + (upper % 2 == 1 ? 1U : ~0U) : bits);
      const SplitFloat again = split_float(joined);
      ASSERT_EQ(again.nearest.bits, halves.nearest.bits) << bits;
      ASSERT_EQ(again.remainder, halves.remainder) << bits;
    }
  }
}

TEST(SplitFloat, LeavesWhatIsNotFinite) {
  EXPECT_EQ(joined_bits(split_float(0x7F800000U)), 0x7F800000U);
  EXPECT_EQ(joined_bits(split_float(0xFF800000U)), 0xFF800000U);
  for (const std::uint32_t nan : {0x7F800001U, 0x7F808000U, 0x7FFF8000U, 0xFFFFFFFFU, 0xFF818000U}) {
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(joined_bits(split_float(nan)))));
    EXPECT_TRUE(std::isnan(float{split_float(nan).nearest}));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, SixteenBits,
                         ::testing::Values(Format{"bf16", 0x7f80, 8, 7, bf16_to_float, float_to_bf16},
                                           Format{"f16", 0x7c00, 5, 10, f16_to_float, float_to_f16}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
