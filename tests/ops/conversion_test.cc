// Conversions between fp32 and the 16-bit types are those of base/dtype.h, bit for bit, and from f64 round once.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/back_ends.h"

namespace teratron::testing {
namespace {

// Every sign, exponent and upper mantissa, with lower bits on both sides of, and at, the midpoints that bf16 and f16
// round at.
std::vector<float> all_kinds_of_floats() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x2000U, 0x2FFFU, 0x3000U, 0x3001U,
                                      0x7FFFU, 0x8000U, 0x8001U, 0xEFFFU, 0xF000U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  return values;
}

template <class To, class From>
std::vector<To> converted(Backend& backend, DType to, DType from, const std::vector<From>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor source(backend, from, {count}), target(backend, to, {count});
  backend.upload(source, values.data());
  backend.copy(target, source);
  std::vector<To> results(values.size());
  backend.download(results.data(), target);
  return results;
}

bool is_nan(Bf16 value) { return (value.bits & 0x7FFFU) > 0x7F80U; }
bool is_nan(F16 value) { return (value.bits & 0x7FFFU) > 0x7C00U; }

class Conversion : public ::testing::TestWithParam<BackEnd> {
 protected:
  // Both ways between fp32 and `half`. NaN stays NaN of its sign; which one is left open.
  template <class Half>
  void expect_the_scalar_conversions(DType half) {
    const std::vector<float> values = all_kinds_of_floats();
    const auto halves = converted<Half>(*backend_, half, DType::kF32, values);
    for (std::size_t e = 0; e < values.size(); ++e) {
      const Half expected(values[e]);
      const bool both_nan =
          is_nan(expected) && is_nan(halves[e]) && (expected.bits & 0x8000U) == (halves[e].bits & 0x8000U);
      ASSERT_TRUE(both_nan || halves[e].bits == expected.bits)
          << values[e] << ": got " << halves[e].bits << ", expected " << expected.bits;
    }
    std::vector<Half> all(65536);
    for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits].bits = static_cast<std::uint16_t>(bits);
    const auto floats = converted<float>(*backend_, DType::kF32, half, all);
    for (std::size_t e = 0; e < all.size(); ++e) {
      const float expected = all[e];
      const bool equal = std::bit_cast<std::uint32_t>(floats[e]) == std::bit_cast<std::uint32_t>(expected);
      ASSERT_TRUE(equal || (std::isnan(expected) && std::isnan(floats[e]))) << "bits " << e;
    }
  }

  // Just beyond the middle of two neighbours, by less than fp32 resolves: rounding to fp32 first would make it a tie.
  template <class Half>
  void expect_one_rounding_from_double(DType half, double middle, std::uint16_t below) {
    const double little = std::ldexp(middle, -40);
    const auto halves = converted<Half>(
        *backend_, half, DType::kF64, std::vector<double>{middle - little, middle, middle + little, -middle - little});
    EXPECT_EQ(halves[0].bits, below);
    EXPECT_EQ(halves[1].bits, below % 2 == 0 ? below : below + 1);
    EXPECT_EQ(halves[2].bits, below + 1);
    EXPECT_EQ(halves[3].bits, 0x8000 + below + 1);
  }

  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(Conversion, Bf16EqualsTheScalarConversion) { expect_the_scalar_conversions<Bf16>(DType::kBF16); }
TEST_P(Conversion, F16EqualsTheScalarConversion) { expect_the_scalar_conversions<F16>(DType::kF16); }

TEST_P(Conversion, FromDoubleRoundsOnce) {
  expect_one_rounding_from_double<Bf16>(DType::kBF16, 1 + 0x1p-8, 0x3F80);
  expect_one_rounding_from_double<Bf16>(DType::kBF16, 1 + 0x3p-8, 0x3F81);
  expect_one_rounding_from_double<F16>(DType::kF16, 1 + 0x1p-11, 0x3C00);
  expect_one_rounding_from_double<F16>(DType::kF16, 0x3p-25, 0x0001);  // subnormal
  expect_one_rounding_from_double<F16>(DType::kF16, 65520, 0x7BFF);    // infinity or the largest number
}

TEST_P(Conversion, ASumOfSquaresShowsOverflow) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {
    for (const float wrong : {INFINITY, NAN}) {
      const Tensor source(*backend_, DType::kF32, {100}), view(*backend_, dtype, {100});
      std::vector<float> values(100, 1.0F);
      backend_->upload(source, values.data());
      backend_->copy(view, source);
      EXPECT_EQ(backend_->sum_of_squares(view), 100);
      values[77] = wrong;
      backend_->upload(source, values.data());
      backend_->copy(view, source);
      EXPECT_FALSE(std::isfinite(backend_->sum_of_squares(view))) << name_of(dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Conversion, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
