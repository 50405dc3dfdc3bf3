// Linear layers: a grid of blocks, each computed by one thread and finished while it is in cache
// (linear_blocks-inl.h).
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/products/linear.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/products/linear.h"
#include "ops/cpu/products/linear_blocks-inl.h"
#include "ops/cpu/products/linear_rows-inl.h"
#include "ops/cpu/products/low_rank-inl.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/gemm_kernel-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Rows of y that finish_transposed() brings into order at a time.
constexpr std::int64_t kRowsInOrder = block_size(64, 2);

// Scratch memory of finish_transposed().
std::int64_t transposed_floats(std::int64_t rows) { return std::min(rows, kRowsInOrder) * kPanelColumns; }

// Prefetches a block of at most a panel's columns, whose rows are far apart.
void fetch(const TensorRef& view, const GemmBlock& block) {
  const std::int64_t size = size_of(view.dtype), last = block.columns() * size - 1;
  for (std::int64_t row = block.row_begin; row < block.row_end; ++row) {
    const auto* const at = static_cast<const std::byte*>(view.data) + (row * view.dim(1) + block.column_begin) * size;
    hwy::Prefetch(at);
    hwy::Prefetch(at + last);
  }
}

// Brings a block of y transposed, some outputs for all rows of x, into order and finishes it: as many outputs at a time
// as a panel has columns.
template <auto finish>
void finish_transposed(const FrozenLinearForward& args, const GemmBlock& block, const GemmSums& sums) {
  float* const panel = scratch_floats(Scratch::kTileA, transposed_floats(block.columns()));
  for (std::int64_t t = 0; t < block.columns(); t += kRowsInOrder) {
    const std::int64_t rows = std::min(kRowsInOrder, block.columns() - t), row = block.column_begin + t;
    for (std::int64_t o = 0; o < block.rows(); o += kPanelColumns) {
      const std::int64_t outputs = std::min(kPanelColumns, block.rows() - o), first = block.row_begin + o;
      const GemmBlock in_order{row, row + rows, first, first + outputs};
      fetch(args.linear.y, in_order);
      pack_panel_transposed(sums.data + o * sums.stride + t, sums.stride, rows, outputs, panel);
      finish(args, in_order, {panel, kPanelColumns});
    }
  }
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
    constexpr auto kFinish = &finish_frozen_forward<add_bf16_low_rank_part, finish_bf16_forward_block>;
    return {.finish_forward = kFinish,
            .finish_forward_transposed = &finish_transposed<kFinish>,
            .multiply_rows = &multiply_rows_in_place<Bf16, Bf16, multiply_bf16_rows, kFinish>,
            .finish_gradient = &finish_frozen_gradient<add_bf16_low_rank_part, finish_bf16_gradient_block>,
            .sum_columns = &sum_columns<Bf16>};
  }
  return choose_by_storage(dtype, []<class T>(ElementType<T>) {
    constexpr auto kFinish = &finish_frozen_forward<add_low_rank_part<T>, finish_forward_block<T>>;
    return LinearKernels{.finish_forward = kFinish,
                         .finish_forward_transposed = &finish_transposed<kFinish>,
                         .widen_rows = std::is_same_v<T, float> ? nullptr : &widen_rows<T>,
                         .multiply_rows = &multiply_rows_in_place<float, T, multiply_widened_rows<T>, kFinish>,
                         .finish_gradient = &finish_frozen_gradient<add_low_rank_part<T>, finish_gradient_block<T>>,
                         .sum_columns = &sum_columns<T>};
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
HWY_EXPORT(low_rank_floats);

// Generation computes a row of each text: packing the weights would cost as much as the product. kMostRowsAlone bounds
// the memory of so many texts.
constexpr std::int64_t kFewRows = block_size(4, 2), kMostRowsAlone = block_size(64, 3);
constexpr std::int64_t kFewRowsGrain = block_size(128, 3);

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

std::optional<DType> tiles_in(const TensorRef& weight) {
  return is_tiles(weight.dtype) ? std::optional(weight.dtype) : std::nullopt;
}

// A product with a weight [outputs, inputs]; the caller adds its rows (m, a.data and c).
Gemm product_with(const TensorRef& weight, WeightProduct use, std::int64_t inputs, std::int64_t outputs, DType dtype,
                  bool bf16_products) {
  const bool is_forward = use == WeightProduct::kForward;
  return {.m = 0,
          .n = is_forward ? outputs : inputs,
          .k = is_forward ? inputs : outputs,
          .dtype = dtype,
          .bf16_products = bf16_products,
          .a = {nullptr, is_forward ? inputs : outputs},
          .b = {weight.data, inputs, /*transposed=*/is_forward, tiles_in(weight)},
          .c = nullptr,
          .c_stride = is_forward ? outputs : inputs};
}

std::int64_t packed_bytes(const Gemm& product) {
  constexpr std::int64_t kWord = sizeof(float);
  return kWord * packed_words(product.n, product.k, product.dtype, product.bf16_products);
}

void use_packed(Gemm& product, const TensorRef& packed) {
  if (!packed) return;
  check_equal(packed.elements(), packed_bytes(product), "bytes of a packed weight");
  product.panels = packed.data;
}

// Memory of the sums: an fp32 output itself; null for others, which are rounded once when a block is finished.
float* sums_of(const TensorRef& output) { return output.dtype == DType::kF32 ? output.as<float>() : nullptr; }

// Computes all rows, each as in a call of its own.
void multiply_rows_alone(const FrozenLinearForward& args, const LinearKernels& kernels) {
  const TensorRef& all = args.linear.x;
  const std::int64_t rows = all.dim(0), inputs = all.dim(1);
  for (std::int64_t begin = 0; begin < rows; begin += kMostRowsAlone) {
    const std::int64_t end = std::min(rows, begin + kMostRowsAlone);
    const void* x = all.slice(0, begin, end).data;
    if (kernels.widen_rows != nullptr) {
      float* const widened = scratch_floats(Scratch::kPanels, (end - begin) * inputs);
      kernels.widen_rows(all, begin, end, widened);
      x = widened;
    }
    parallel_for(args.linear.y.dim(1), kFewRowsGrain, [&](std::int64_t first, std::int64_t last) {
      kernels.multiply_rows(args, x, {begin, end, first, last});
    });
  }
}

}  // namespace

void include_linear(const WorkShapes::Product& product, DType dtype, bool bf16_products, bool has_backward,
                    ScratchSizes& sizes) {
  const auto [rows, inputs, outputs] = product;
  const bool has_c = dtype == DType::kF32;  // else sums are rounded from a block's own
  GemmShape shape{.m = rows, .n = outputs, .k = inputs, .dtype = dtype, .bf16_products = bf16_products, .has_c = has_c};
  include_gemm(shape, sizes);
  const std::int64_t alone = std::min(rows, has_backward ? kFewRows : kMostRowsAlone);
  sizes.include(Scratch::kTileB, alone * std::min(outputs, kFewRowsGrain));
  if (dtype != DType::kF32 && !bf16_products) sizes.include(Scratch::kPanels, alone * inputs);
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

std::int64_t packed_weight_bytes(const WorkShapes::Product& product, WeightProduct use, const CpuOptions& options,
                                 PackedFor time) {
  const auto [rows, inputs, outputs] = product;
  const bool bf16_products = multiplies_bf16(options);
  const bool is_in_place =
      rows <= kFewRows || (time == PackedFor::kStep && is_faster_transposed(rows, inputs, bf16_products));
  if (use == WeightProduct::kForward && is_in_place) return 0;
  return packed_bytes(product_with({}, use, inputs, outputs, options.compute_dtype, bf16_products));
}

void CpuBackend::do_pack_weight(const TensorRef& packed, const TensorRef& weight, WeightProduct use) {
  Gemm product = product_with(weight, use, weight.dim(1), weight.dim(0), compute_dtype_, bf16_products_);
  use_packed(product, packed);
  product.m = 1;
  product.c = sums_of({packed.data, compute_dtype_, {1}});
  pack_all(product);
}

void include_low_rank(std::int64_t rows, std::int64_t rank, DType dtype, bool bf16_products, ScratchSizes& sizes) {
  if (rank == 0) return;
  const std::int64_t most = std::min(rows, kMostRows);  // of a block that is computed transposed; others have fewer
  sizes.include(Scratch::kLowRank, bf16_products
                                       ? bf16_pairs(rank) * kBf16PanelColumns
                                       : HWY_DYNAMIC_DISPATCH(low_rank_floats)(most, rank, dtype != DType::kF32));
}

void CpuBackend::do_linear_forward(const LinearForward& args) { do_frozen_linear_forward({.linear = args}); }

void CpuBackend::do_frozen_linear_forward(const FrozenLinearForward& frozen) {
  const LinearForward& args = frozen.linear;
  const std::int64_t rows = args.x.dim(0), inputs = args.x.dim(1), outputs = args.y.dim(1);
  const LinearKernels kernels = HWY_DYNAMIC_DISPATCH(linear_kernels)(args.x.dtype, bf16_products_);
  const std::optional<DType> tiles = tiles_in(args.weight);
  if (!tiles && (rows <= kFewRows || args.rows_alone)) return multiply_rows_alone(frozen, kernels);
  const bool is_transposed = !tiles && !args.packed && is_faster_transposed(rows, inputs, bf16_products_);
  const std::vector<GemmRange> ranges = text_ranges(is_transposed ? TensorRef() : args.lengths, rows);
  clear_padding(args.y, ranges);
  clear_padding(args.activated, ranges);
  if (ranges.empty()) return;
  Gemm product = product_with(args.weight, WeightProduct::kForward, inputs, outputs, args.x.dtype, bf16_products_);
  product.m = rows;
  product.a.data = args.x.data;
  product.c = sums_of(args.y);
  product.rows = ranges;
  use_packed(product, args.packed);
  auto finish = kernels.finish_forward;
  if (is_transposed) {
    product.rows = {};
    std::swap(product.m, product.n);
    std::swap(product.a.data, product.b.data);
    product.c = nullptr;  // y is transposed, so the sums cannot lie in it
    finish = kernels.finish_forward_transposed;
  }
  gemm(product, [&](const GemmBlock& block, const GemmSums& sums) { finish(frozen, block, sums); });
}

void CpuBackend::do_linear_input_gradient(const LinearInputGradient& args) {
  do_frozen_linear_input_gradient({.linear = args});
}

void CpuBackend::do_frozen_linear_input_gradient(const FrozenLinearInputGradient& frozen) {
  const LinearInputGradient& args = frozen.linear;
  const std::int64_t rows = args.dx.dim(0), inputs = args.dx.dim(1), outputs = args.dy.dim(1);
  const LinearKernels kernels = HWY_DYNAMIC_DISPATCH(linear_kernels)(args.dy.dtype, bf16_products_);
  const std::vector<GemmRange> ranges = text_ranges(args.lengths, rows);
  clear_padding(args.dx, ranges);
  clear_padding(args.dgate, ranges);
  if (ranges.empty()) return;
  Gemm product =
      product_with(args.weight, WeightProduct::kInputGradient, inputs, outputs, args.dy.dtype, bf16_products_);
  product.m = rows;
  product.a.data = args.dy.data;
  product.c = sums_of(args.dx);
  product.rows = ranges;
  use_packed(product, args.packed);
  gemm(product, [&](const GemmBlock& block, const GemmSums& sums) { kernels.finish_gradient(frozen, block, sums); });
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
