// What src/engine/ops/cuda/ptx.h says in instructions, said in C++ for the emulated GPU, with the same declarations.
// The layout of matrix fragments over the lanes of a warp is that of the PTX ISA's chapters on mma and ldmatrix.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "base/float_types.h"
#include "emulated_gpu/emulator.h"
#include "emulated_gpu/tensor_core.h"

namespace teratron::cuda {

inline float bf16_value(std::uint16_t bits) { return bf16_to_float(bits); }
inline float f16_value(std::uint16_t bits) {
  const bool is_zero = (bits & 0x7fffU) == 0;  // the usual one, in tiles that are not full
  return is_zero ? std::bit_cast<float>(std::uint32_t{bits} << 16) : f16_to_float(bits);
}
inline std::uint16_t bf16_bits(float value) { return float_to_bf16(value); }
inline std::uint16_t f16_bits(float value) { return float_to_f16(value); }
inline std::uint32_t bf16_pair(float low, float high) {
  return bf16_bits(low) | (std::uint32_t{bf16_bits(high)} << 16);
}
inline std::uint32_t f16_pair(float low, float high) { return f16_bits(low) | (std::uint32_t{f16_bits(high)} << 16); }

inline float fast_exp2(float value) { return std::exp2(value); }
inline float fast_reciprocal(float value) { return 1 / value; }

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulated::dynamic_shared_memory());
}

using MatrixA = std::array<std::uint32_t, 4>;
using MatrixB = std::array<std::uint32_t, 2>;
using MatrixC = std::array<float, 4>;

namespace emulation {

// `value`: of the bits of an element.
template <class Value>
void multiply(MatrixC& c, const MatrixA& a, const MatrixB& b, const Value& value) {
  struct Operands {
    std::array<float, 8> a;
    std::array<float, 4> b;
  };
  static_assert(sizeof(Operands) <= emulated::kLaneBytes);
  const auto unpack = [&](float* to, std::uint32_t pair) {
    to[0] = value(static_cast<std::uint16_t>(pair));
    to[1] = value(static_cast<std::uint16_t>(pair >> 16));
  };
  Operands own;  // as numbers, which eight lanes read
  for (std::size_t i = 0; i < a.size(); ++i) unpack(&own.a[2 * i], a[i]);
  for (std::size_t i = 0; i < b.size(); ++i) unpack(&own.b[2 * i], b[i]);
  emulated::put_in(&own, sizeof(own));
  const int lane = emulated::lane();
  // Two rows of a and two columns of b, of 16 values each; four lanes hold a row or a column.
  float rows[2][16], columns[2][16];
  for (int t = 0; t < 4; ++t) {
    Operands operands;
    std::memcpy(&operands, emulated::put_in_by(lane / 4 * 4 + t), sizeof(operands));
    for (std::size_t i = 0; i < 4; ++i) std::memcpy(&rows[i % 2][2 * t + (i < 2 ? 0 : 8)], &operands.a[2 * i], 8);
    for (int column = 0; column < 2; ++column) {
      std::memcpy(&operands, emulated::put_in_by((lane % 4 * 2 + column) * 4 + t), sizeof(operands));
      for (std::size_t i = 0; i < 2; ++i)
        std::memcpy(&columns[column][2 * t + (i == 0 ? 0 : 8)], &operands.b[2 * i], 8);
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    double products[emulated::kTensorCoreTerms];
    for (std::size_t k = 0; k < std::size(products); ++k) products[k] = double{rows[i / 2][k]} * columns[i % 2][k];
    c[i] = emulated::tensor_core_sum(c[i], products);
  }
}

inline MatrixA load_matrices(const void* row, bool transposed) {
  emulated::check_aligned(row, 16, "ldmatrix");
  emulated::put_in(&row, sizeof(row));
  MatrixA result;
  const int lane = emulated::lane();
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t pair[2];
    for (int e = 0; e < 2; ++e) {
      const int r = transposed ? lane % 4 * 2 + e : lane / 4, c = transposed ? lane / 4 : lane % 4 * 2 + e;
      const std::uint16_t* from = nullptr;
      std::memcpy(&from, emulated::put_in_by(matrix * 8 + r), sizeof(from));
      pair[e] = from[c];
    }
    std::memcpy(&result[static_cast<std::size_t>(matrix)], pair, sizeof(pair));
  }
  return result;
}

}  // namespace emulation

inline void multiply_bf16(MatrixC& c, const MatrixA& a, const MatrixB& b) {
  emulation::multiply(c, a, b, [](std::uint16_t bits) { return bf16_value(bits); });
}
inline void multiply_f16(MatrixC& c, const MatrixA& a, const MatrixB& b) {
  emulation::multiply(c, a, b, [](std::uint16_t bits) { return f16_value(bits); });
}
inline MatrixA load_matrices(const void* row) { return emulation::load_matrices(row, false); }
inline MatrixA load_matrices_transposed(const void* row) { return emulation::load_matrices(row, true); }

inline void start_copy_16(void* to, const void* from, bool given = true) {
  emulated::start_copy(to, from, 16, given ? 16 : 0);
}
inline void start_copy_8(void* to, const void* from, bool given = true) {
  emulated::start_copy(to, from, 8, given ? 8 : 0);
}
inline void commit_copies() { emulated::commit_copies(); }
template <int kGroupsLeft>
void wait_for_copies() {
  emulated::wait_for_copies(kGroupsLeft);
}

}  // namespace teratron::cuda
