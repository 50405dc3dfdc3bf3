// Products of a few rows with rows of weights that are read once and packed nowhere. Compiled once per target, so the
// include guard toggles.
#if defined(TERATRON_OPS_CPU_LINEAR_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_LINEAR_ROWS_INL_H_
#undef TERATRON_OPS_CPU_LINEAR_ROWS_INL_H_
#else
#define TERATRON_OPS_CPU_LINEAR_ROWS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/cpu/products/fetch_ahead.h"
#include "ops/cpu/products/linear_blocks-inl.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Rows of x and of the weights that are multiplied at a time: as many as the registers hold.
constexpr int kDotRows = kFloatLanes >= 16 ? 4 : 2, kDotColumns = 4;

template <class T, int columns>
using Ahead = FetchAhead<T, columns, kFloatLanes>;

// sums[rows, columns] of x[rows, inputs] weight[columns, inputs]^T. A sum is one chain of additions of vectors,
// whatever the tile's size is, so that a row's bits do not depend on the rows beside it.
template <int rows, int columns, class T>
HWY_INLINE void dot_tile(std::int64_t inputs, const float* x, const T* weight, Ahead<T, columns>& ahead, float* sums,
                         std::int64_t sums_stride) {
  FloatVector sum[rows][columns];
#pragma GCC unroll 4
  for (int t = 0; t < rows; ++t) {
#pragma GCC unroll 4
    for (int o = 0; o < columns; ++o) sum[t][o] = constant(0);
  }
  for_each_vector(inputs, [&](std::int64_t i, auto access) HWY_ATTR {
    ahead.step();
    FloatVector weights[columns];
#pragma GCC unroll 4
    for (int o = 0; o < columns; ++o) weights[o] = access.load(weight + o * inputs + i);
#pragma GCC unroll 4
    for (int t = 0; t < rows; ++t) {
      const FloatVector value = access.load(x + t * inputs + i);
#pragma GCC unroll 4
      for (int o = 0; o < columns; ++o) sum[t][o] = hn::MulAdd(value, weights[o], sum[t][o]);
    }
  });
#pragma GCC unroll 4
  for (int t = 0; t < rows; ++t) {
#pragma GCC unroll 4
    for (int o = 0; o < columns; ++o) sums[t * sums_stride + o] = sum_of_lanes(sum[t][o]);
  }
}

// Multiplies any number of rows.
template <int columns, class T, int tile = kDotRows>
HWY_INLINE void dot_rows(std::int64_t rows, std::int64_t inputs, const float* x, const T* weight,
                         Ahead<T, columns>& ahead, float* sums, std::int64_t sums_stride) {
  std::int64_t t = 0;
  for (; t + tile <= rows; t += tile) {
    dot_tile<tile, columns>(inputs, x + t * inputs, weight, ahead, sums + t * sums_stride, sums_stride);
  }
  if constexpr (tile > 1) {
    dot_rows<columns, T, tile / 2>(rows - t, inputs, x + t * inputs, weight, ahead, sums + t * sums_stride,
                                   sums_stride);
  }
}

// Multiplies any number of columns; rows of x in fp32.
template <class T>
void multiply_widened_rows(std::int64_t rows, std::int64_t columns, std::int64_t inputs, const float* x,
                           const T* weight, float* sums, std::int64_t sums_stride) {
  std::int64_t o = 0;
  // A single row is as fast as the weights come from memory, which is fastest where they are read in order.
  for (; rows > 1 && o + kDotColumns <= columns; o += kDotColumns) {
    Ahead<T, kDotColumns> ahead(weight + (o + kDotColumns) * inputs, rows, kDotRows);
    dot_rows<kDotColumns>(rows, inputs, x, weight + o * inputs, ahead, sums + o, sums_stride);
  }
  Ahead<T, 1> nothing;
  for (; o < columns; ++o) dot_rows<1>(rows, inputs, x, weight + o * inputs, nothing, sums + o, sums_stride);
}

// Converts rows [begin, end) of x to fp32.
template <class T>
void widen_rows(const TensorRef& x, std::int64_t begin, std::int64_t end, float* widened) {
  widen_row(at<T>(x, begin, 0), (end - begin) * x.dim(1), widened);
}

// Computes a block of y. `multiply` makes the sums x[rows, inputs] weight[columns, inputs]^T of an x of type X and a
// weight of type T.
template <class X, class T, auto multiply, auto finish>
void multiply_rows_in_place(const FrozenLinearForward& args, const void* x, const GemmBlock& block) {
  const LinearForward& linear = args.linear;
  const std::int64_t rows = block.rows(), columns = block.columns();
  float* const sums = scratch_floats(Scratch::kTileB, rows * columns);
  multiply(rows, columns, linear.x.dim(1), static_cast<const X*>(x), at<T>(linear.weight, block.column_begin, 0), sums,
           columns);
  finish(args, block, {sums, columns});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
