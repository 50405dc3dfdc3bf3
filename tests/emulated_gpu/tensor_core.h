// Sums as tensor cores make them, which round toward zero where the units of a CPU round to nearest: the products of
// one step and the sum so far are cut to a common exponent with 24 bits behind the leading one, added exactly, and cut
// to fp32 (measured by Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021, for the
// A100; later cards keep more bits).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace teratron::emulated {

constexpr std::int64_t kTensorCoreTerms = 16;  // of a step: k of mma.m16n8k16

// sum + the total of the products, each of them exact in double. At most kTensorCoreTerms.
//
// Tests spend a large part of their time here, so exponents are read from the bits of numbers, and the cut products are
// added as integers: 25 bits and a sign each. A product of two fp32 values is never a subnormal double.
inline float tensor_core_sum(float sum, std::span<const double> products) {
  constexpr std::uint64_t kMagnitude = ~std::uint64_t{0} >> 1, kInfinity = std::uint64_t{0x7ff} << 52;
  const auto magnitude = [](double value) { return std::bit_cast<std::uint64_t>(value) & kMagnitude; };
  std::uint64_t largest = magnitude(sum);
  for (const double product : products) largest = std::max(largest, magnitude(product));
  if (largest == 0 || largest >= kInfinity) {  // or NaN
    double total = sum;
    for (const double product : products) total += product;
    return static_cast<float>(total);
  }
  const auto exponent = static_cast<std::int64_t>(largest >> 52);
  const auto power_of_two = [](std::int64_t biased) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(biased) << 52);
  };
  const double quantum = power_of_two(exponent - 24), per_quantum = power_of_two(2 * 1023 + 24 - exponent);
  auto cut = static_cast<std::int64_t>(sum * per_quantum);
  for (const double product : products) cut += static_cast<std::int64_t>(product * per_quantum);
  const double total = static_cast<double>(cut) * quantum;
  const auto rounded = static_cast<float>(total);
  return std::abs(static_cast<double>(rounded)) > std::abs(total) ? std::nextafterf(rounded, 0.0F) : rounded;
}

}  // namespace teratron::emulated
