// Layer normalisation, alone and fused with the residual connection before it: a row is read from memory once and
// stays in the first-level cache for the passes over it.
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/layer_norm.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <cmath>

#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/dropout-inl.h"
#include "ops/cpu/elements.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

void apply_row(const LayerNormForward& args, std::int64_t row) {
  const std::int64_t hidden = args.x.dim(1);
  const float *const x = args.x.as<float>() + row * hidden, *const gamma = args.gamma.as<float>();
  const float* const beta = args.beta.as<float>();
  float* const y = args.y.as<float>() + row * hidden;
  const FloatVector mean = constant(args.mean.as<float>()[row]), rstd = constant(args.rstd.as<float>()[row]);
  for_each_vector(hidden, [&](std::int64_t j, auto access) HWY_ATTR {
    const FloatVector normalised = hn::Mul(hn::Sub(access.load(x + j), mean), rstd);
    access.store(hn::MulAdd(normalised, access.load(gamma + j), access.load(beta + j)), y + j);
  });
}

void normalise_row(const LayerNormForward& args, std::int64_t row) {
  const std::int64_t hidden = args.x.dim(1);
  const auto size = static_cast<float>(hidden);
  const float* const x = args.x.as<float>() + row * hidden;
  const float mean = sum_over(hidden, [&](std::int64_t j, auto access) HWY_ATTR { return access.load(x + j); }) / size;
  const FloatVector centre = constant(mean);
  const float squares = sum_over(hidden, [&](std::int64_t j, auto access) HWY_ATTR {
    const FloatVector deviation = hn::Sub(access.load(x + j), centre);
    return hn::Mul(deviation, deviation);
  });
  args.mean.as<float>()[row] = mean;
  args.rstd.as<float>()[row] = 1 / std::sqrt(squares / size + static_cast<float>(args.epsilon));
  apply_row(args, row);
}

void layer_norm_rows(const LayerNormForward& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) normalise_row(args, row);
}

void apply_rows(const LayerNormForward& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) apply_row(args, row);
}

void residual_layer_norm_rows(const ResidualAdd& add, const LayerNormForward& norm, std::int64_t begin,
                              std::int64_t end) {
  const std::int64_t tokens = add.sum.dim(1), hidden = add.sum.dim(2);
  DropoutMask mask(add.dropout);
  for (std::int64_t row = begin; row < end; ++row) {
    float* const sum = add.sum.as<float>() + row * hidden;
    const float* const residual = add.residual.as<float>() + row * hidden;
    const float* const branch = add.branch.as<float>() + row * hidden;
    if (add.dropout.active()) {
      const std::int64_t first = first_element(add.dropout, row / tokens, row % tokens, hidden);
      dropout_add(sum, residual, branch, mask, first, hidden);
    } else {
      plain_add(sum, residual, branch, hidden);
    }
    normalise_row(norm, row);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(apply_rows);
HWY_EXPORT(residual_layer_norm_rows);

constexpr std::int64_t kRowGrain = 16;

}  // namespace

void CpuBackend::do_layer_norm_forward(const LayerNormForward& args) {
  parallel_for(args.x.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(layer_norm_rows)(args, begin, end);
  });
}

void CpuBackend::do_layer_norm_apply(const LayerNormForward& args) {
  parallel_for(args.x.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(apply_rows)(args, begin, end);
  });
}

void CpuBackend::do_residual_add_layer_norm(const ResidualAdd& add, const LayerNormForward& norm) {
  parallel_for(norm.x.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(residual_layer_norm_rows)(add, norm, begin, end);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
