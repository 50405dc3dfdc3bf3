// Floating element types as C++ types, for kernels that are templates over the stored type. The 16-bit types only
// store. They convert to fp32 implicitly, where all arithmetic happens, and back explicitly, rounding once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "base/error.h"

namespace teratron {

// Rounds to fp32 such that rounding the result to a shorter format equals rounding `value` to that format: inexact
// values get an odd last bit (Boldo and Melquiond, "When double rounding is odd", 2005).
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  explicit Bf16(float value) : bits(float_to_bf16(value)) {}
  explicit Bf16(double value) : bits(float_to_bf16(round_to_odd(value))) {}
  operator float() const { return bf16_to_float(bits); }  // NOLINT: exact
};

// Stochastic rounding of an fp32 value, given by its bits, to bf16. It rounds away from zero with a probability
// proportional to the distance, if the lower 16 bits of `random` are uniform. So a sum of many small steps keeps its
// mean. NaN stays NaN.
constexpr Bf16 bf16_by_chance(std::uint32_t value_bits, std::uint32_t random) {
  const bool is_nan = (value_bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = is_nan ? value_bits | 0x400000U : value_bits + (random & 0xFFFFU);
  Bf16 stored;
  stored.bits = static_cast<std::uint16_t>(rounded >> 16);
  return stored;
}

// Fp32 value in two halves: the nearest bf16, and the lower 16 bits, which restore the difference. A value midway
// between two bf16 first moves by its last bit towards the even one, since its lower bits do not say which of the two
// is `nearest`.
struct SplitFloat {
  Bf16 nearest;
  std::uint16_t remainder = 0;
};

constexpr SplitFloat split_float(std::uint32_t value_bits) {
  SplitFloat halves;
  if ((value_bits & 0x7FFFFFFFU) > 0x7F800000U) {  // NaN
    halves.nearest.bits = static_cast<std::uint16_t>(value_bits >> 16 | 0x40U);
    return halves;
  }
  const bool is_midway = (value_bits & 0xFFFFU) == 0x8000U, is_odd = (value_bits & 0x10000U) != 0;
  if (is_midway) value_bits = is_odd ? value_bits + 1 : value_bits - 1;
  halves.nearest.bits = static_cast<std::uint16_t>((value_bits + 0x8000U) >> 16);
  halves.remainder = static_cast<std::uint16_t>(value_bits);
  return halves;
}

// Bits of the fp32 value of two halves.
constexpr std::uint32_t joined_bits(SplitFloat halves) {
  const std::uint32_t lower = halves.remainder;
  return (std::uint32_t{halves.nearest.bits} << 16) + lower - (lower >= 0x8000U ? 0x10000U : 0U);
}

struct F16 {
  std::uint16_t bits = 0;

  F16() = default;
  explicit F16(float value) : bits(float_to_f16(value)) {}
  explicit F16(double value) : bits(float_to_f16(round_to_odd(value))) {}
  operator float() const { return f16_to_float(bits); }  // NOLINT: exact
};

// Type of sums and statistics of values stored as C.
template <class C>
using Accumulator = std::conditional_t<std::is_same_v<C, double>, double, float>;

constexpr DType accumulation_dtype_of(DType compute) { return compute == DType::kF64 ? DType::kF64 : DType::kF32; }

template <class T>
struct ElementType {
  using Type = T;
};

// Calls visit(ElementType<T>()) with the type that `dtype` stores.
template <class Visit>
auto visit_floating(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kF64: return visit(ElementType<double>());
    case DType::kF32: return visit(ElementType<float>());
    case DType::kBF16: return visit(ElementType<Bf16>());
    case DType::kF16: return visit(ElementType<F16>());
    default: throw InternalError(fmt::format("{} is not a floating type", name_of(dtype)));
  }
}

}  // namespace teratron
