// Products of bf16 by the processor's instruction, bit by bit against what its manual says of it. Skipped where the
// processor lacks it.
#include "ops/cpu/products/bf16_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

std::vector<Bf16> some_bf16(Random& random, std::int64_t count) {
  std::vector<Bf16> values;
  for (const double value : random.normals({count})) values.emplace_back(value);
  return values;
}

#if defined(__aarch64__)

// Rounds to odd: a value that is not exact gets an odd last bit. The sums and products below are exact in long double's
// 113 bits, since values of the tests differ by less than 2^60.
float to_odd(long double value) {
  const auto nearest = static_cast<float>(value);
  if (nearest == value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<long double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

// Adds the products of depths p and p + 1, of which the last may have none, as BFMMLA does (Arm Architecture Reference
// Manual, BFDotAdd): to each other, then to the sum, each rounded to odd.
float add_pair(float sum, const Bf16* a, std::int64_t a_step, const Bf16* b, std::int64_t b_step, std::int64_t p,
               std::int64_t depth) {
  const auto product = [&](std::int64_t q) {
    return q < depth ? static_cast<long double>(float{a[q * a_step]}) * float{b[q * b_step]} : 0.0L;
  };
  return to_odd(static_cast<long double>(sum) + to_odd(product(p) + product(p + 1)));
}

#else

// Adds the products of depths p and p + 1, of which the last may have none, as VDPBF16PS does: the later one to the sum
// and then the earlier one, each rounded once.
float add_pair(float sum, const Bf16* a, std::int64_t a_step, const Bf16* b, std::int64_t b_step, std::int64_t p,
               std::int64_t depth) {
  const bool pair = p + 1 < depth;
  sum = std::fma(pair ? float{a[(p + 1) * a_step]} : 0.0F, pair ? float{b[(p + 1) * b_step]} : 0.0F, sum);
  return std::fma(float{a[p * a_step]}, float{b[p * b_step]}, sum);
}

#endif

float sum_of_products(const Bf16* a, std::int64_t a_step, const Bf16* b, std::int64_t b_step, std::int64_t depth) {
  float sum = 0;
  for (std::int64_t p = 0; p < depth; p += 2) sum = add_pair(sum, a, a_step, b, b_step, p, depth);
  return sum;
}

class Bf16Kernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_bf16_products()) GTEST_SKIP() << "this processor has no " << kBf16Instruction;
  }
};

struct ProductSizes {
  std::int64_t rows, columns, depth, a_stride, b_stride;

  // Strides of a[rows, depth] or its transpose, and of b[depth, columns] or its transpose.
  static ProductSizes any(Random& random, bool a_transposed, bool b_transposed) {
    const std::int64_t rows = 1 + random.below(40), columns = 1 + random.below(100), depth = 1 + random.below(90);
    return {rows, columns, depth, (a_transposed ? rows : depth) + random.below(9),
            (b_transposed ? depth : columns) + random.below(9)};
  }
};

TEST_F(Bf16Kernels, MultiplyAsTheManualSaysBitByBit) {
  Random random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const bool a_transposed = random.coin(), b_transposed = random.coin(), accumulate = random.coin();
    const auto [rows, columns, depth, a_stride, b_stride] = ProductSizes::any(random, a_transposed, b_transposed);
    SCOPED_TRACE(::testing::Message() << "seed 11, trial " << trial << ": " << rows << "x" << columns << "x" << depth
                                      << " transposed " << a_transposed << b_transposed);
    // Nothing around what may be read, so that sanitizers see more than that.
    const auto a = some_bf16(random, a_transposed ? (depth - 1) * a_stride + rows : (rows - 1) * a_stride + depth);
    const auto b =
        some_bf16(random, b_transposed ? (columns - 1) * b_stride + depth : (depth - 1) * b_stride + columns);
    const std::int64_t panels = (columns + kBf16PanelColumns - 1) / kBf16PanelColumns, words = bf16_pairs(depth);
    std::vector<std::uint32_t> packed(static_cast<std::size_t>(panels * kBf16PanelColumns * words));
    if (!b_transposed) pack_bf16_panels(b.data(), b_stride, depth, columns, packed.data());
    std::vector<std::uint32_t> tiles(static_cast<std::size_t>((rows + kBf16TileRows) * words));
    if (a_transposed) pack_bf16_tiles(a.data(), a_stride, rows, depth, tiles.data());
    const std::int64_t c_stride = columns + 3;
    const Values before = random.normals({rows * c_stride});
    std::vector<float> c(before.begin(), before.end());
    for (std::int64_t j = 0; j < columns; j += kBf16PanelColumns) {
      std::uint32_t* const panel = packed.data() + j * words;
      const std::int64_t count = std::min(kBf16PanelColumns, columns - j);
      if (b_transposed) pack_bf16_panel_transposed(b.data() + j * b_stride, b_stride, depth, count, panel);
      if (a_transposed) {
        multiply_bf16_tiles(rows, count, depth, tiles.data(), panel, c.data() + j, c_stride, accumulate);
      } else {
        multiply_bf16_panel(rows, count, depth, a.data(), a_stride, panel, c.data() + j, c_stride, accumulate);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < c_stride; ++j) {
        const auto old = static_cast<float>(before[static_cast<std::size_t>(i * c_stride + j)]);
        const float sum =
            j >= columns
                ? old
                : sum_of_products(a.data() + (a_transposed ? i : i * a_stride), a_transposed ? a_stride : 1,
                                  b.data() + (b_transposed ? j * b_stride : j), b_transposed ? 1 : b_stride, depth);
        const float expected = j < columns && accumulate ? sum + old : sum;
        ASSERT_EQ(c[static_cast<std::size_t>(i * c_stride + j)], expected) << "element " << i << ", " << j;
      }
    }
  }
}

// On Arm a sum takes the pairs in order. On x86 lane l of 16 takes the pairs l, l + 16, .. of a row; then lanes 8 apart
// are added, 4, 2 and 1.
float sum_of_rows(const Bf16* a, const Bf16* b, std::int64_t depth) {
#if defined(__aarch64__)
  return sum_of_products(a, 1, b, 1, depth);
#else
  constexpr std::int64_t kLanes = 16;
  float lanes[kLanes] = {};
  for (std::int64_t p = 0; p < depth; p += 2) {
    float& lane = lanes[p / 2 % kLanes];
    lane = add_pair(lane, a, 1, b, 1, p, depth);
  }
  for (std::int64_t apart = kLanes / 2; apart > 0; apart /= 2) {
    for (std::int64_t lane = 0; lane < apart; ++lane) lanes[lane] += lanes[lane + apart];
  }
  return lanes[0];
#endif
}

TEST_F(Bf16Kernels, MultiplyRowsInPlaceBitByBit) {
  Random random(13);
  for (int trial = 0; trial < 200; ++trial) {
    const std::int64_t rows = 1 + random.below(22), columns = 1 + random.below(20), depth = 1 + random.below(150);
    SCOPED_TRACE(::testing::Message() << "seed 13, trial " << trial << ": " << rows << "x" << columns << "x" << depth);
    const auto a = some_bf16(random, rows * depth), b = some_bf16(random, columns * depth);
    const std::int64_t c_stride = columns + random.below(3);
    constexpr float kUntouched = 77;
    std::vector<float> c(static_cast<std::size_t>((rows - 1) * c_stride + columns), kUntouched);
    multiply_bf16_rows(rows, columns, depth, a.data(), b.data(), c.data(), c_stride);
    for (std::int64_t at = 0; at < std::ssize(c); ++at) {
      const std::int64_t row = at / c_stride, column = at % c_stride;
      const float expected =
          column < columns ? sum_of_rows(a.data() + row * depth, b.data() + column * depth, depth) : kUntouched;
      ASSERT_EQ(c[static_cast<std::size_t>(at)], expected) << "element " << row << ", " << column;
    }
  }
}

// Padding multiplies zeros with nothing that the caller owns.
TEST_F(Bf16Kernels, InfinitiesAndNanPropagateAndReachNoOtherElement) {
  for (const float special : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    constexpr std::int64_t kDepth = 3;
    std::vector<Bf16> a(2 * (kDepth + 1), Bf16(1.0F));
    a[3] = Bf16(special);  // beyond the depth of row 0
    a[6] = Bf16(special);  // the last depth of row 1
    const std::vector<Bf16> b(kDepth, Bf16(2.0F));
    std::vector<std::uint32_t> panel(static_cast<std::size_t>(bf16_pairs(kDepth) * kBf16PanelColumns));
    pack_bf16_panels(b.data(), 1, kDepth, 1, panel.data());
    float c[2] = {};
    multiply_bf16_panel(2, 1, kDepth, a.data(), kDepth + 1, panel.data(), c, 1, false);
    EXPECT_EQ(c[0], 6);
    EXPECT_EQ(std::isnan(c[1]), std::isnan(special));
    EXPECT_EQ(std::isinf(c[1]), std::isinf(special));
  }
}

TEST_F(Bf16Kernels, RoundAsStorageDoes) {
  Random random(12);
  for (const std::int64_t count : {1, 15, 16, 17, 32, 33, 96, 101}) {
    const Values values = random.normals({count});
    const std::vector<float> from(values.begin(), values.end());
    std::vector<Bf16> to(from.size());
    round_to_bf16(from.data(), count, to.data());
    for (std::size_t i = 0; i < from.size(); ++i) EXPECT_EQ(to[i].bits, float_to_bf16(from[i])) << count << ", " << i;
    const std::vector<Bf16> bias(to.rbegin(), to.rend());
    round_to_bf16(from.data(), count, to.data(), bias.data());
    for (std::size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(to[i].bits, float_to_bf16(from[i] + bf16_to_float(bias[i].bits))) << count << ", " << i;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
