// Products of rows with rows of weights that are read where they are (multiply_bf16_rows() of bf16_kernels.h). Written
// in intrinsics for the reasons of bf16_kernels.cc.
#include "ops/cpu/products/bf16_kernels.h"

#if defined(__x86_64__) && !defined(TERATRON_WITHOUT_BF16_PRODUCTS)

// GCC warns falsely about an unused operand of its own intrinsics.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>

#include "hwy/base.h"
#include "ops/cpu/products/fetch_ahead.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")
namespace teratron {
namespace {

// Rows of x and of the weights that are multiplied at a time. 16 registers hold their sums.
constexpr int kDotRows = 4, kDotColumns = 4;
constexpr std::int64_t kStep = 32;  // values of a row in a register

inline __m512i load(const Bf16* from) { return _mm512_loadu_si512(from); }
inline __m512 add_products(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// The sums of the lanes of four vectors, each by the same tree of additions: lanes 8 apart, then 4, 2 and 1.
inline __m128 sums_of_lanes(const __m512 (&sums)[kDotColumns]) {
  const __m512 ab =
      _mm512_add_ps(_mm512_shuffle_f32x4(sums[0], sums[1], 0x44), _mm512_shuffle_f32x4(sums[0], sums[1], 0xEE));
  const __m512 cd =
      _mm512_add_ps(_mm512_shuffle_f32x4(sums[2], sums[3], 0x44), _mm512_shuffle_f32x4(sums[2], sums[3], 0xEE));
  __m512 fours = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
  fours = _mm512_add_ps(fours, _mm512_permute_ps(fours, 0x4E));
  fours = _mm512_add_ps(fours, _mm512_permute_ps(fours, 0xB1));
  return _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, fours));
}

template <int columns>
using Ahead = FetchAhead<Bf16, columns, kStep>;

// Adds the products of a[rows, depth] and b[columns, depth]. Lane l of a sum takes the pairs l, l + 16, .. of a row.
template <int rows, int columns>
inline void add_pairs(std::int64_t depth, const Bf16* a, const Bf16* b, Ahead<columns>& ahead,
                      __m512 (&sums)[rows][columns]) {
  const auto add = [&](const auto& load) {
    __m512i weights[columns];
#pragma GCC unroll 4
    for (int o = 0; o < columns; ++o) weights[o] = load(b + o * depth);
#pragma GCC unroll 4
    for (int t = 0; t < rows; ++t) {
      const __m512i values = load(a + t * depth);
#pragma GCC unroll 4
      for (int o = 0; o < columns; ++o) sums[t][o] = add_products(sums[t][o], values, weights[o]);
    }
  };
  std::int64_t p = 0;
  for (; p + kStep <= depth; p += kStep) {
    ahead.step();
    add([&](const Bf16* row) { return load(row + p); });
  }
  if (p < depth) {
    const __mmask32 rest = (__mmask32{1} << (depth - p)) - 1;
    add([&](const Bf16* row) { return _mm512_maskz_loadu_epi16(rest, row + p); });
  }
}

// c[rows, kDotColumns] of a[rows, depth] and b[kDotColumns, depth].
template <int rows>
inline void dot_tile(std::int64_t depth, const Bf16* a, const Bf16* b, Ahead<kDotColumns>& ahead, float* c,
                     std::int64_t c_stride) {
  __m512 sums[rows][kDotColumns];
#pragma GCC unroll 16
  for (int i = 0; i < rows * kDotColumns; ++i) sums[i / kDotColumns][i % kDotColumns] = _mm512_setzero_ps();
  add_pairs(depth, a, b, ahead, sums);
#pragma GCC unroll 4
  for (int t = 0; t < rows; ++t) _mm_storeu_ps(c + t * c_stride, sums_of_lanes(sums[t]));
}

template <int tile = kDotRows>
inline void dot_rows(std::int64_t rows, std::int64_t depth, const Bf16* a, const Bf16* b, Ahead<kDotColumns>& ahead,
                     float* c, std::int64_t c_stride) {
  std::int64_t t = 0;
  for (; t + tile <= rows; t += tile) dot_tile<tile>(depth, a + t * depth, b, ahead, c + t * c_stride, c_stride);
  if constexpr (tile > 1) {
    dot_rows<tile / 2>(rows - t, depth, a + t * depth, b, ahead, c + t * c_stride, c_stride);
  }
}

// c[columns] of a row and b[columns, depth], columns <= kDotColumns. The hardware fetches ahead where memory is read in
// order.
inline void dot_row(std::int64_t columns, std::int64_t depth, const Bf16* a, const Bf16* b, float* c) {
  Ahead<1> nothing;
  __m512 sums[kDotColumns];
#pragma GCC unroll 4
  for (int o = 0; o < kDotColumns; ++o) {
    __m512 sum[1][1] = {{_mm512_setzero_ps()}};
    if (o < columns) add_pairs(depth, a, b + o * depth, nothing, sum);
    sums[o] = sum[0][0];
  }
  float totals[kDotColumns];
  _mm_storeu_ps(totals, sums_of_lanes(sums));
  std::copy_n(totals, columns, c);
}

}  // namespace

void multiply_bf16_rows(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Bf16* a, const Bf16* b,
                        float* c, std::int64_t c_stride) {
  std::int64_t o = 0;
  for (; rows > 1 && o + kDotColumns <= columns; o += kDotColumns) {
    Ahead<kDotColumns> ahead(b + (o + kDotColumns) * depth, rows, kDotRows);
    dot_rows(rows, depth, a, b + o * depth, ahead, c + o, c_stride);
  }
  for (; o < columns; o += kDotColumns) {
    const std::int64_t count = std::min<std::int64_t>(kDotColumns, columns - o);
    for (std::int64_t t = 0; t < rows; ++t) dot_row(count, depth, a + t * depth, b + o * depth, c + t * c_stride + o);
  }
}

}  // namespace teratron
HWY_POP_ATTRIBUTES

#endif
