// The instructions that kernels use and C++ has no words for. tests/emulated_gpu has a header of the same name that
// says them in C++, so that kernels run in tests without a GPU.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

namespace teratron::cuda {

__device__ inline float bf16_value(std::uint16_t bits) { return __uint_as_float(std::uint32_t{bits} << 16); }

__device__ inline float f16_value(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Two values rounded to nearest even; `low` in the lower half.
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  std::uint32_t pair;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#else
  const auto rounded = [](float value) {
    const std::uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return (bits >> 16) | 0x40U;
    return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  };
  pair = rounded(low) | (rounded(high) << 16);
#endif
  return pair;
}

__device__ inline std::uint16_t bf16_bits(float value) { return static_cast<std::uint16_t>(bf16_pair(value, 0)); }

__device__ inline std::uint16_t f16_bits(float value) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ inline std::uint32_t f16_pair(float low, float high) {
  return f16_bits(low) | (std::uint32_t{f16_bits(high)} << 16);
}

// 2^value within two units in the last place; 0 of -infinity.
__device__ inline float fast_exp2(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

// 1 / value within one unit in the last place; 0 of an infinity.
__device__ inline float fast_reciprocal(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

// The shared memory that the launch asked for. Bytes: kernels of several types share one declaration.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char memory[];
  return reinterpret_cast<T*>(memory);
}

// Fragments of c[16, 8] += a[16, 16] b[16, 8] over the 32 lanes of a warp, 16-bit values in pairs: with g = lane / 4
// and t = lane % 4, a holds (row, columns) (g, 2t..), (g + 8, 2t..), (g, 2t + 8..), (g + 8, 2t + 8..); b holds (rows,
// column) (2t.., g), (2t + 8.., g); c holds (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
using MatrixA = std::array<std::uint32_t, 4>;
using MatrixB = std::array<std::uint32_t, 2>;
using MatrixC = std::array<float, 4>;

__device__ inline void multiply_bf16(MatrixC& c, const MatrixA& a, const MatrixB& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline void multiply_f16(MatrixC& c, const MatrixA& a, const MatrixB& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8x8 matrices of 16-bit values from shared memory: lane l gives the address, a multiple of 16, of row l % 8 of
// matrix l / 8, and receives of each matrix the pair at (row l / 4, columns 2 (l % 4)..), or the one at (rows 2 (l %
// 4).., column l / 4).
__device__ inline MatrixA load_matrices(const void* row) {
  MatrixA m;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
  return m;
}

__device__ inline MatrixA load_matrices_transposed(const void* row) {
  MatrixA m;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
  return m;
}

// 16 bytes from global to shared memory, past the registers; zeros where not `given`. There when waited for.
__device__ inline void start_copy_16(void* to, const void* from, bool given = true) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(given ? 16 : 0)
               : "memory");
}
// Copies 8 bytes.
__device__ inline void start_copy_8(void* to, const void* from, bool given = true) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from), "r"(given ? 8 : 0) : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kGroupsLeft>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroupsLeft) : "memory");
}

}  // namespace teratron::cuda
