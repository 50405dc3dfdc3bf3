// Linear layers: a grid of blocks, each computed by one thread and finished while it is in cache
// (linear_blocks-inl.h).
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/products/linear.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/products/linear.h"
#include "ops/cpu/products/linear_blocks-inl.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/gemm_kernel-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Scratch memory of finish_transposed().
std::int64_t transposed_floats(std::int64_t rows) { return rows * kPanelColumns; }

// Brings a block of y transposed, some outputs for all rows of x, into order and finishes it: as many outputs at a time
// as a panel has columns.
template <auto finish>
void finish_transposed(const LinearForward& args, const GemmBlock& block, const GemmSums& sums) {
  float* const panel = scratch_floats(Scratch::kTileA, transposed_floats(block.columns()));
  for (std::int64_t o = 0; o < block.rows(); o += kPanelColumns) {
    const std::int64_t outputs = std::min(kPanelColumns, block.rows() - o), first = block.row_begin + o;
    pack_panel_transposed(sums.data + o * sums.stride, sums.stride, block.columns(), outputs, panel);
    finish(args, {block.column_begin, block.column_end, first, first + outputs}, {panel, kPanelColumns});
  }
}

// Rows of x and of the weights that are multiplied at a time: as many as the registers hold.
constexpr int kDotRows = kFloatLanes >= 16 ? 4 : 2, kDotColumns = 4;

// sums[rows, columns] of x[rows, inputs] weight[columns, inputs]^T. A sum is one chain of additions of vectors,
// whatever the tile's size is, so that a row's bits do not depend on the rows beside it.
template <int rows, int columns, class T>
HWY_INLINE void dot_tile(std::int64_t inputs, const T* x, const T* weight, float* sums, std::int64_t sums_stride) {
  FloatVector sum[rows][columns];
#pragma GCC unroll 4
  for (int t = 0; t < rows; ++t) {
#pragma GCC unroll 4
    for (int o = 0; o < columns; ++o) sum[t][o] = constant(0);
  }
  for_each_vector(inputs, [&](std::int64_t i, auto access) HWY_ATTR {
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
HWY_INLINE void dot_rows(std::int64_t rows, std::int64_t inputs, const T* x, const T* weight, float* sums,
                         std::int64_t sums_stride) {
  std::int64_t t = 0;
  for (; t + tile <= rows; t += tile) {
    dot_tile<tile, columns>(inputs, x + t * inputs, weight, sums + t * sums_stride, sums_stride);
  }
  if constexpr (tile > 1) {
    dot_rows<columns, T, tile / 2>(rows - t, inputs, x + t * inputs, weight, sums + t * sums_stride, sums_stride);
  }
}

// y[rows, begin..end) as products of rows with rows of the weights, which are read once and packed nowhere.
template <class T, auto finish>
void multiply_row_by_row(const LinearForward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = args.x.dim(0), inputs = args.x.dim(1), columns = end - begin;
  float* const sums = scratch_floats(Scratch::kTileB, rows * columns);
  const T *const x = args.x.as<T>(), *const weights = args.weight.as<T>();
  std::int64_t o = begin;
  // A single row is as fast as the weights come from memory, which is fastest where they are read in order.
  for (; rows > 1 && o + kDotColumns <= end; o += kDotColumns) {
    dot_rows<kDotColumns>(rows, inputs, x, weights + o * inputs, sums + o - begin, columns);
  }
  for (; o < end; ++o) dot_rows<1>(rows, inputs, x, weights + o * inputs, sums + o - begin, columns);
  finish(args, {0, rows, begin, end}, {sums, columns});
}

// Columns [begin, end) of dbias (+)= the sum over the rows of dy.
template <class T>
void sum_columns(const LinearWeightGradient& args, std::int64_t begin, std::int64_t end) {
  float* const total = args.dbias.as<float>() + begin;
  if (!args.accumulate) std::fill(total, total + end - begin, 0.0F);
  constexpr std::int64_t kRowsAtOnce = 4;  // the sums so far are read and written once for so many
  const std::int64_t rows = args.dy.dim(0), stride = args.dy.dim(1);
  std::int64_t t = 0;
  for (; t + kRowsAtOnce <= rows; t += kRowsAtOnce) {
    const T* const from = at<T>(args.dy, t, begin);
    for_each_vector(end - begin, [&](std::int64_t o, auto access) HWY_ATTR {
      FloatVector sum = access.load(total + o);
#pragma GCC unroll 4
      for (std::int64_t row = 0; row < kRowsAtOnce; ++row) sum = hn::Add(sum, access.load(from + row * stride + o));
      access.store(sum, total + o);
    });
  }
  for (; t < rows; ++t) plain_add(total, total, at<T>(args.dy, t, begin), end - begin);
}

LinearKernels linear_kernels(DType dtype, bool bf16_products) {
  if (bf16_products) {
    return {&finish_bf16_forward_block, &finish_transposed<finish_bf16_forward_block>,
            &multiply_row_by_row<Bf16, finish_bf16_forward_block>, &finish_bf16_gradient_block, &sum_columns<Bf16>};
  }
  return choose_by_storage(dtype, []<class T>(ElementType<T>) {
    return LinearKernels{&finish_forward_block<T>, &finish_transposed<finish_forward_block<T>>,
                         &multiply_row_by_row<T, finish_forward_block<T>>, &finish_gradient_block<T>, &sum_columns<T>};
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(linear_kernels);
HWY_EXPORT(transposed_floats);

// Generation computes one row at a time: packing the weights would cost as much as the product.
constexpr std::int64_t kFewRows = block_size(4, 2), kFewRowsGrain = block_size(128, 3);

// Whether y is computed transposed: then x is packed instead of the weights, which are read in place, and y is brought
// into order at the end. The bits are the same, since every sum is of the same products in the same order. Measured on
// Zen 4 with weights that come from memory: up to 1.9 times as fast, at 32 rows.
constexpr std::int64_t kFewestInputs = block_size(512, 4);  // to bring y into order costs more than fewer save
constexpr std::int64_t kMostRows = block_size(256, 5), kFewestBf16Rows = block_size(24, 3),
                       kMostBf16Rows = block_size(128, 5);
bool is_faster_transposed(std::int64_t rows, std::int64_t inputs, bool bf16_products) {
  if (inputs < kFewestInputs) return false;
  if (bf16_products) return rows >= kFewestBf16Rows && rows <= kMostBf16Rows;
  return rows <= kMostRows;
}

// Memory of the sums: fp32 outputs themselves; others are rounded once when a block is finished.
float* sums_of(const TensorRef& output) { return output.dtype == DType::kF32 ? output.as<float>() : nullptr; }

}  // namespace

void include_linear(const WorkShapes::Product& product, DType dtype, bool bf16_products, bool has_backward,
                    ScratchSizes& sizes) {
  const auto [rows, inputs, outputs] = product;
  const bool has_c = dtype == DType::kF32;  // else sums are rounded from a block's own
  GemmShape shape{.m = rows, .n = outputs, .k = inputs, .dtype = dtype, .bf16_products = bf16_products, .has_c = has_c};
  include_gemm(shape, sizes);
  sizes.include(Scratch::kTileB, std::min(rows, kFewRows) * kFewRowsGrain);
  if (inputs >= kFewestInputs && (!bf16_products || rows >= kFewestBf16Rows)) {
    const std::int64_t few = std::min(rows, bf16_products ? kMostBf16Rows : kMostRows);
    shape = {.m = outputs, .n = few, .k = inputs, .dtype = dtype, .bf16_products = bf16_products, .has_c = false};
    include_gemm(shape, sizes);
    sizes.include(Scratch::kTileA, HWY_DYNAMIC_DISPATCH(transposed_floats)(few));
  }
  if (!has_backward) return;
  include_gemm({.m = rows, .n = inputs, .k = outputs, .dtype = dtype, .bf16_products = bf16_products, .has_c = has_c},
               sizes);
  include_gemm({.m = outputs,
                .n = inputs,
                .k = rows,
                .dtype = dtype,
                .bf16_products = bf16_products,
                .is_a_transposed = true,
                .has_c = true},
               sizes);
}

void CpuBackend::do_linear_forward(const LinearForward& args) {
  const std::int64_t rows = args.x.dim(0), inputs = args.x.dim(1), outputs = args.y.dim(1);
  const LinearKernels kernels = HWY_DYNAMIC_DISPATCH(linear_kernels)(args.x.dtype, bf16_products_);
  if (rows <= kFewRows || args.rows_alone) {
    parallel_for(outputs, kFewRowsGrain,
                 [&](std::int64_t begin, std::int64_t end) { kernels.multiply_row_by_row(args, begin, end); });
    return;
  }
  const bool is_transposed = is_faster_transposed(rows, inputs, bf16_products_);
  const std::vector<GemmRange> ranges = text_ranges(is_transposed ? TensorRef() : args.lengths, rows);
  clear_padding(args.y, ranges);
  clear_padding(args.activated, ranges);
  if (ranges.empty()) return;
  Gemm product{.m = rows,
               .n = outputs,
               .k = inputs,
               .dtype = args.x.dtype,
               .bf16_products = bf16_products_,
               .a = {args.x.data, inputs},
               .b = {args.weight.data, inputs, /*transposed=*/true},
               .c = sums_of(args.y),
               .c_stride = outputs,
               .rows = ranges};
  auto finish = kernels.finish_forward;
  if (is_transposed) {
    product.rows = {};
    std::swap(product.m, product.n);
    std::swap(product.a.data, product.b.data);
    product.c = nullptr;  // y lies the other way round
    finish = kernels.finish_forward_transposed;
  }
  gemm(product, [&](const GemmBlock& block, const GemmSums& sums) { finish(args, block, sums); });
}

void CpuBackend::do_linear_input_gradient(const LinearInputGradient& args) {
  const std::int64_t rows = args.dx.dim(0), inputs = args.dx.dim(1), outputs = args.dy.dim(1);
  const LinearKernels kernels = HWY_DYNAMIC_DISPATCH(linear_kernels)(args.dy.dtype, bf16_products_);
  const std::vector<GemmRange> ranges = text_ranges(args.lengths, rows);
  clear_padding(args.dx, ranges);
  clear_padding(args.dgate, ranges);
  if (ranges.empty()) return;
  const Gemm product{.m = rows,
                     .n = inputs,
                     .k = outputs,
                     .dtype = args.dy.dtype,
                     .bf16_products = bf16_products_,
                     .a = {args.dy.data, outputs},
                     .b = {args.weight.data, inputs},
                     .c = sums_of(args.dx),
                     .c_stride = inputs,
                     .rows = ranges};
  gemm(product, [&](const GemmBlock& block, const GemmSums& sums) { kernels.finish_gradient(args, block, sums); });
}

void CpuBackend::do_linear_weight_gradient(const LinearWeightGradient& args) {
  const std::int64_t rows = args.x.dim(0), inputs = args.x.dim(1), outputs = args.dy.dim(1);
  const LinearKernels kernels = HWY_DYNAMIC_DISPATCH(linear_kernels)(args.dy.dtype, bf16_products_);
  std::vector<GemmRange> ranges = text_ranges(args.lengths, rows);
  if (ranges.empty()) ranges = {{0, 1}};  // padding, of which dy is 0
  const Gemm product{.m = outputs,
                     .n = inputs,
                     .k = rows,
                     .dtype = args.dy.dtype,
                     .bf16_products = bf16_products_,
                     .a = {args.dy.data, outputs, /*transposed=*/true},
                     .b = {args.x.data, inputs},
                     .c = args.dweight.as<float>(),
                     .c_stride = inputs,
                     .accumulate = args.accumulate,
                     .depths = ranges};
  gemm(product, [&](const GemmBlock& block, const GemmSums&) {
    if (args.dbias && block.column_begin == 0) kernels.sum_columns(args, block.row_begin, block.row_end);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
