// Layer normalisation, alone and fused with the residual connection before it: a row is read from memory once and
// stays in the first-level cache for the passes over it.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/layer_norm.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <cmath>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/simd/dropout-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void apply_row(const LayerNormForward& args, std::int64_t row) {
  const std::int64_t hidden = args.x.dim(1);
  const T *const x = args.x.as<T>() + row * hidden, *const gamma = args.gamma.as<T>();
  const T* const beta = args.beta.as<T>();
  T* const y = args.y.as<T>() + row * hidden;
  const FloatVector mean = constant(args.mean.as<float>()[row]), rstd = constant(args.rstd.as<float>()[row]);
  for_each_vector(hidden, [&](std::int64_t j, auto access) HWY_ATTR {
    const FloatVector normalised = hn::Mul(hn::Sub(access.load(x + j), mean), rstd);
    access.store(hn::MulAdd(normalised, access.load(gamma + j), access.load(beta + j)), y + j);
  });
}

template <class T>
void normalise_row(const LayerNormForward& args, std::int64_t row) {
  const std::int64_t hidden = args.x.dim(1);
  const auto size = static_cast<float>(hidden);
  const T* const x = args.x.as<T>() + row * hidden;
  const float mean = sum_over(hidden, [&](std::int64_t j, auto access) HWY_ATTR { return access.load(x + j); }) / size;
  const FloatVector centre = constant(mean);
  const float squares = sum_over(hidden, [&](std::int64_t j, auto access) HWY_ATTR {
    const FloatVector deviation = hn::Sub(access.load(x + j), centre);
    return hn::Mul(deviation, deviation);
  });
  args.mean.as<float>()[row] = mean;
  args.rstd.as<float>()[row] = 1 / std::sqrt(squares / size + static_cast<float>(args.epsilon));
  apply_row<T>(args, row);
}

template <class T>
void layer_norm_rows(const LayerNormForward& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) normalise_row<T>(args, row);
}

template <class T>
void apply_rows(const LayerNormForward& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) apply_row<T>(args, row);
}

template <class T>
void residual_layer_norm_rows(const ResidualAddLayerNorm& args, std::int64_t begin, std::int64_t end) {
  const auto& [add, norm] = args;
  const std::int64_t tokens = add.sum.dim(1), hidden = add.sum.dim(2);
  DropoutMask mask(add.dropout);
  for (std::int64_t row = begin; row < end; ++row) {
    T* const sum = add.sum.as<T>() + row * hidden;
    const T* const residual = add.residual.as<T>() + row * hidden;
    const T* const branch = add.branch.as<T>() + row * hidden;
    if (add.dropout.active()) {
      const std::int64_t first = first_element(add.dropout, row / tokens, row % tokens, hidden);
      dropout_add(sum, residual, branch, mask, first, hidden);
    } else {
      plain_add(sum, residual, branch, hidden);
    }
    normalise_row<T>(norm, row);
  }
}

using NormRows = void (*)(const LayerNormForward&, std::int64_t, std::int64_t);
using ResidualNormRows = void (*)(const ResidualAddLayerNorm&, std::int64_t, std::int64_t);

NormRows layer_norm_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> NormRows { return &layer_norm_rows<T>; });
}

NormRows apply_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> NormRows { return &apply_rows<T>; });
}

ResidualNormRows residual_layer_norm_kernel(DType dtype) {
  return choose_by_storage(dtype,
                           []<class T>(ElementType<T>) -> ResidualNormRows { return &residual_layer_norm_rows<T>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(layer_norm_kernel);
HWY_EXPORT(apply_kernel);
HWY_EXPORT(residual_layer_norm_kernel);

constexpr std::int64_t kRowGrain = block_size(16, 1);

}  // namespace

void CpuBackend::do_layer_norm_forward(const LayerNormForward& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(layer_norm_kernel)(args.x.dtype);
  parallel_for(args.x.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) { kernel(args, begin, end); });
}

void CpuBackend::do_layer_norm_apply(const LayerNormForward& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(apply_kernel)(args.x.dtype);
  parallel_for(args.x.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) { kernel(args, begin, end); });
}

void CpuBackend::do_residual_add_layer_norm(const ResidualAddLayerNorm& args) {
  const std::int64_t rows = args.norm.x.dim(0);
  const auto kernel = HWY_DYNAMIC_DISPATCH(residual_layer_norm_kernel)(args.norm.x.dtype);
  parallel_for(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end) { kernel(args, begin, end); });
}

}  // namespace teratron
#endif  // HWY_ONCE
