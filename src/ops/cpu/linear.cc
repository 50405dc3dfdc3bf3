// Linear layers: a grid of blocks, each computed by one thread together with what is done to it while it is still in
// cache (bias, activation, bias gradient).
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/linear.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/math-inl.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Rows [0, rows) and columns [0, columns) of a matrix with `stride` elements from row to row.
struct Block {
  std::int64_t rows, columns, stride;
};

template <class Gelu>
void activate_block_as(float* y, const float* bias, float* activated, Block block) {
  for (std::int64_t t = 0; t < block.rows; ++t) {
    for_each_vector(block.columns, [&](std::int64_t o, auto access) HWY_ATTR {
      FloatVector u = access.load(y + t * block.stride + o);
      if (bias != nullptr) {
        u = hn::Add(u, access.load(bias + o));
        access.store(u, y + t * block.stride + o);
      }
      access.store(Gelu::value(u), activated + t * block.stride + o);
    });
  }
}

// y += bias (if any); activated = activation(y) (if any).
void finish_forward_block(Activation activation, float* y, const float* bias, float* activated, std::int64_t rows,
                          std::int64_t columns, std::int64_t stride) {
  const Block block{rows, columns, stride};
  if (activation == Activation::kGeluTanh) return activate_block_as<GeluTanh>(y, bias, activated, block);
  if (activation == Activation::kGeluErf) return activate_block_as<GeluErf>(y, bias, activated, block);
  if (bias == nullptr) return;
  for (std::int64_t t = 0; t < rows; ++t) {
    for_each_vector(columns, [&](std::int64_t o, auto access) HWY_ATTR {
      access.store(hn::Add(access.load(y + t * stride + o), access.load(bias + o)), y + t * stride + o);
    });
  }
}

// y[rows, begin..end) = x weight^T where there are so few rows that reading the weights is all the work.
void multiply_few_rows(const LinearForward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t inputs = args.x.dim(1), outputs = args.y.dim(1);
  for (std::int64_t o = begin; o < end; ++o) {
    const float* const weight = args.weight.as<float>() + o * inputs;
    for (std::int64_t t = 0; t < args.x.dim(0); ++t) {
      const float* const x = args.x.as<float>() + t * inputs;
      args.y.as<float>()[t * outputs + o] = sum_over(inputs, [&](std::int64_t i, auto access) HWY_ATTR {
        return hn::Mul(access.load(x + i), access.load(weight + i));
      });
    }
  }
}

template <class Gelu>
void differentiate_block_as(float* dx, const float* pre_activation, float* activated, Block block) {
  for (std::int64_t t = 0; t < block.rows; ++t) {
    const std::int64_t row = t * block.stride;
    for_each_vector(block.columns, [&](std::int64_t i, auto access) HWY_ATTR {
      const ValueAndSlope gelu = Gelu::value_and_slope(access.load(pre_activation + row + i));
      access.store(gelu.value, activated + row + i);
      access.store(hn::Mul(gelu.slope, access.load(dx + row + i)), dx + row + i);
    });
  }
}

void finish_gradient_block(Activation activation, float* dx, const float* pre_activation, float* activated,
                           std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  const Block block{rows, columns, stride};
  if (activation == Activation::kGeluTanh) differentiate_block_as<GeluTanh>(dx, pre_activation, activated, block);
  if (activation == Activation::kGeluErf) differentiate_block_as<GeluErf>(dx, pre_activation, activated, block);
}

void sum_rows(float* total, const float* values, std::int64_t rows, std::int64_t columns, std::int64_t stride,
              bool accumulate) {
  if (!accumulate) std::fill(total, total + columns, 0.0F);
  for (std::int64_t t = 0; t < rows; ++t) plain_add(total, total, values + t * stride, columns);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(finish_forward_block);
HWY_EXPORT(finish_gradient_block);
HWY_EXPORT(multiply_few_rows);
HWY_EXPORT(sum_rows);

// Generation computes one row at a time: packing the weights would cost as much as the product.
constexpr std::int64_t kFewRows = 4, kFewRowsGrain = 128;

float* at(const TensorRef& view, std::int64_t row, std::int64_t column) {
  return view ? view.as<float>() + row * view.dim(1) + column : nullptr;
}

}  // namespace

void CpuBackend::do_linear_forward(const LinearForward& args) {
  const std::int64_t rows = args.x.dim(0), inputs = args.x.dim(1), outputs = args.y.dim(1);
  const Gemm product{.m = rows,
                     .n = outputs,
                     .k = inputs,
                     .a = {args.x.as<float>(), inputs},
                     .b = {args.weight.as<float>(), inputs, /*transposed=*/true},
                     .c = args.y.as<float>(),
                     .c_stride = outputs};
  const float* const bias = args.bias ? args.bias.as<float>() : nullptr;
  const auto finish = [&](const GemmBlock& block) {
    HWY_DYNAMIC_DISPATCH(finish_forward_block)
    (args.activation, at(args.y, block.row_begin, block.column_begin), bias ? bias + block.column_begin : nullptr,
     at(args.activated, block.row_begin, block.column_begin), block.rows(), block.columns(), outputs);
  };
  if (rows > kFewRows) return gemm(product, finish);
  parallel_for(outputs, kFewRowsGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(multiply_few_rows)(args, begin, end);
    finish({0, rows, begin, end});
  });
}

void CpuBackend::do_linear_input_gradient(const LinearInputGradient& args) {
  const std::int64_t rows = args.dx.dim(0), inputs = args.dx.dim(1), outputs = args.dy.dim(1);
  const Gemm product{.m = rows,
                     .n = inputs,
                     .k = outputs,
                     .a = {args.dy.as<float>(), outputs},
                     .b = {args.weight.as<float>(), inputs},
                     .c = args.dx.as<float>(),
                     .c_stride = inputs};
  gemm(product, [&](const GemmBlock& block) {
    HWY_DYNAMIC_DISPATCH(finish_gradient_block)
    (args.activation, at(args.dx, block.row_begin, block.column_begin),
     at(args.pre_activation, block.row_begin, block.column_begin),
     at(args.activated, block.row_begin, block.column_begin), block.rows(), block.columns(), inputs);
  });
}

void CpuBackend::do_linear_weight_gradient(const LinearWeightGradient& args) {
  const std::int64_t rows = args.x.dim(0), inputs = args.x.dim(1), outputs = args.dy.dim(1);
  const Gemm product{.m = outputs,
                     .n = inputs,
                     .k = rows,
                     .a = {args.dy.as<float>(), outputs, /*transposed=*/true},
                     .b = {args.x.as<float>(), inputs},
                     .c = args.dweight.as<float>(),
                     .c_stride = inputs,
                     .accumulate = args.accumulate};
  float* const dbias = args.dbias ? args.dbias.as<float>() : nullptr;
  gemm(product, [&](const GemmBlock& block) {
    if (dbias == nullptr || block.column_begin != 0) return;
    HWY_DYNAMIC_DISPATCH(sum_rows)
    (dbias + block.row_begin, at(args.dy, 0, block.row_begin), rows, block.rows(), outputs, args.accumulate);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
