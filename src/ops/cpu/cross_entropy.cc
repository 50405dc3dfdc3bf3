// Softmax cross-entropy over the columns held here (struct CrossEntropyPartials). A row of logits is small enough for
// the second-level cache, so its two passes cost one pass over memory.
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/cross_entropy.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/math-inl.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

void partials_rows(const CrossEntropyPartials& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t columns = args.logits.dim(1), valid = args.valid_columns;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* const logits = args.logits.as<float>() + row * columns;
    const float max = max_of(logits, valid);
    const FloatVector shift = constant(max);
    const float sum = sum_over(
        valid, [&](std::int64_t c, auto access) HWY_ATTR { return exp(hn::Sub(access.load(logits + c), shift)); });
    const std::int64_t target = args.targets.as<std::int32_t>()[row] - args.vocab_begin;
    args.max.as<float>()[row] = max;
    args.sum.as<float>()[row] = sum;
    args.target_logit.as<float>()[row] = target >= 0 && target < valid ? logits[target] : 0.0F;
  }
}

void backward_rows(const CrossEntropyBackward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t columns = args.logits.dim(1), valid = args.valid_columns;
  for (std::int64_t row = begin; row < end; ++row) {
    float* const logits = args.logits.as<float>() + row * columns;
    const float weight = args.weight.as<float>()[row];
    const FloatVector shift = constant(args.max.as<float>()[row]),
                      factor = constant(weight / args.sum.as<float>()[row]);
    for_each_vector(valid, [&](std::int64_t c, auto access) HWY_ATTR {
      access.store(hn::Mul(factor, exp(hn::Sub(access.load(logits + c), shift))), logits + c);
    });
    std::fill(logits + valid, logits + columns, 0.0F);
    const std::int64_t target = args.targets.as<std::int32_t>()[row] - args.vocab_begin;
    if (target >= 0 && target < valid) logits[target] -= weight;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(partials_rows);
HWY_EXPORT(backward_rows);

constexpr std::int64_t kRowGrain = 4;

}  // namespace

void CpuBackend::do_cross_entropy_partials(const CrossEntropyPartials& args) {
  parallel_for(args.logits.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(partials_rows)(args, begin, end);
  });
}

void CpuBackend::do_cross_entropy_rescale(const TensorRef& sum, const TensorRef& own_max, const TensorRef& max) {
  for (std::int64_t t = 0; t < sum.dim(0); ++t) {
    const float own = own_max.as<float>()[t];
    sum.as<float>()[t] = std::isinf(own) ? 0.0F : sum.as<float>()[t] * std::exp(own - max.as<float>()[t]);
  }
}

void CpuBackend::do_cross_entropy_loss(const TensorRef& loss, const TensorRef& max, const TensorRef& sum,
                                       const TensorRef& target_logit) {
  for (std::int64_t t = 0; t < loss.dim(0); ++t) {
    loss.as<float>()[t] = std::log(sum.as<float>()[t]) + max.as<float>()[t] - target_logit.as<float>()[t];
  }
}

void CpuBackend::do_cross_entropy_backward(const CrossEntropyBackward& args) {
  parallel_for(args.logits.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(backward_rows)(args, begin, end);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
