// Elements of device memory as kernels see them: loaded to fp32 (or double), stored rounded once, one by one or 16
// bytes at a time.
#pragma once

#include <cstdint>

#include "base/float_types.h"
#include "ops/cuda/kernels/ptx.h"

namespace teratron::cuda {

// Type of arithmetic on stored T.
template <class T>
using Wide = Accumulator<T>;

__device__ inline double widened(double value) { return value; }
__device__ inline float widened(float value) { return value; }
__device__ inline float widened(Bf16 value) { return bf16_value(value.bits); }
__device__ inline float widened(F16 value) { return f16_value(value.bits); }

template <class T>
__device__ T narrowed(float value);
template <>
__device__ inline double narrowed<double>(float value) {
  return value;
}
template <>
__device__ inline float narrowed<float>(float value) {
  return value;
}
template <>
__device__ inline Bf16 narrowed<Bf16>(float value) {
  Bf16 stored;
  stored.bits = bf16_bits(value);
  return stored;
}
template <>
__device__ inline F16 narrowed<F16>(float value) {
  F16 stored;
  stored.bits = f16_bits(value);
  return stored;
}

// To an odd last bit where inexact, so that rounding it again is rounding `value` (base/float_types.h).
__device__ inline float narrowed_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (value != value || static_cast<double>(nearest) == value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const double magnitude = value < 0 ? -value : value, got = nearest < 0 ? -nearest : nearest;
  if (got > magnitude) --bits;
  return std::bit_cast<float>(bits | 1U);
}

template <class T>
__device__ T narrowed(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(value);
  } else {
    return narrowed<T>(narrowed_to_odd(value));
  }
}

// Value rounded as T stores it, in the wide type.
template <class T>
__device__ inline Wide<T> as_stored(Wide<T> value) {
  return widened(narrowed<T>(value));
}

// 16 bytes of consecutive elements.
template <class T>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
  __device__ T& operator[](int i) { return values[i]; }
  __device__ const T& operator[](int i) const { return values[i]; }
};

template <class T>
__device__ inline Vector<T> load_vector(const T* from) {
  return *reinterpret_cast<const Vector<T>*>(from);
}

// Whether vectors may be loaded from there and from every `stride` elements after it.
template <class T>
bool takes_vectors(const T* memory, std::int64_t stride = 0) {
  return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0 && stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
}

}  // namespace teratron::cuda
