// Sums as tensor cores make them, which round toward zero where the units of a CPU round to nearest: the products of
// one step and the sum so far are cut to a common exponent with 24 bits behind the leading one, added exactly, and cut
// to fp32 (measured by Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021, for the
// A100; later cards keep more bits).
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace teratron::emulated {

constexpr std::int64_t kTensorCoreTerms = 16;  // of a step: k of mma.m16n8k16

// sum + the total of the products, each of them exact in double. At most kTensorCoreTerms.
inline float tensor_core_sum(float sum, std::span<const double> products) {
  double largest = std::abs(static_cast<double>(sum));
  for (const double product : products) largest = std::fmax(largest, std::abs(product));
  double total = sum;
  if (largest == 0 || !std::isfinite(largest)) {
    for (const double product : products) total += product;
    return static_cast<float>(total);
  }
  const double quantum = std::ldexp(1.0, std::ilogb(largest) - 24), per_quantum = 1 / quantum;
  total = std::trunc(total * per_quantum);
  for (const double product : products) total += std::trunc(product * per_quantum);
  total *= quantum;
  const auto rounded = static_cast<float>(total);
  return std::abs(static_cast<double>(rounded)) > std::abs(total) ? std::nextafterf(rounded, 0.0F) : rounded;
}

}  // namespace teratron::emulated
