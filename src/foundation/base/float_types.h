// The floating element types as C++ types, so that kernels are templates over what memory holds. The 16-bit ones only
// store: they convert to fp32 by themselves, where all arithmetic happens, and back when asked, rounding once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "base/error.h"

namespace teratron {

// To fp32 so that rounding the result to a shorter format is rounding `value` to it: inexact values get an odd last bit
// (Boldo and Melquiond, "When double rounding is odd", 2005).
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

// An fp32 value, given by its bits, rounded to bf16 up or down: away from zero with the probability that is its part of
// the way there, if the lower 16 bits of `random` are uniform. So a sum of many small steps keeps its mean. NaN stays
// NaN.
constexpr Bf16 bf16_by_chance(std::uint32_t value_bits, std::uint32_t random) {
  const bool is_nan = (value_bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = is_nan ? value_bits | 0x400000U : value_bits + (random & 0xFFFFU);
  Bf16 stored;
  stored.bits = static_cast<std::uint16_t>(rounded >> 16);
  return stored;
}

// An fp32 value as two halves: the bf16 nearest to it, and the lower 16 bits, which say what that lacks. A value midway
// between two bf16 first moves by its last bit towards the even one, its nearest: its lower bits could not tell which
// of the two that is.
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

// The bits of the value.
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

// What sums and statistics of values stored as C are kept in.
template <class C>
using Accumulator = std::conditional_t<std::is_same_v<C, double>, double, float>;

constexpr DType accumulation_dtype_of(DType compute) { return compute == DType::kF64 ? DType::kF64 : DType::kF32; }

template <class T>
struct ElementType {
  using Type = T;
};

// visit(ElementType<T>()) with the type that `dtype` stores.
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
