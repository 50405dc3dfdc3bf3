// Softmax cross-entropy over the columns held here (struct CrossEntropyPartials). A row of logits is small enough for
// the second-level cache, so its two passes cost one pass over memory.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/cross_entropy.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/simd/math-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"
#include "ops/valid_columns.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void partials_rows(const CrossEntropyPartials& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t columns = args.logits.dim(1);
  const ValidColumns valid_columns(args);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t valid = valid_columns.of(row);
    const T* const logits = args.logits.as<T>() + row * columns;
    const float max = max_of(logits, valid);
    const FloatVector shift = constant(max);
    const float sum = sum_over(
        valid, [&](std::int64_t c, auto access) HWY_ATTR { return exp(hn::Sub(access.load(logits + c), shift)); });
    const std::int64_t target = args.targets.as<std::int32_t>()[row] - args.vocab_begin;
    args.max.as<float>()[row] = max;
    args.sum.as<float>()[row] = sum;
    args.target_logit.as<float>()[row] = target >= 0 && target < valid ? float{logits[target]} : 0.0F;
  }
}

template <class T>
void backward_rows(const CrossEntropyBackward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t columns = args.logits.dim(1);
  const ValidColumns valid_columns(args);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t valid = valid_columns.of(row);
    T* const logits = args.logits.as<T>() + row * columns;
    const float weight = args.weight.as<float>()[row];
    const FloatVector shift = constant(args.max.as<float>()[row]),
                      factor = constant(weight / args.sum.as<float>()[row]);
    const auto gradient = [&](FloatVector logit) HWY_ATTR { return hn::Mul(factor, exp(hn::Sub(logit, shift))); };
    const std::int64_t target = args.targets.as<std::int32_t>()[row] - args.vocab_begin;
    const bool is_here = target >= 0 && target < valid;
    const float target_logit = is_here ? float{logits[target]} : 0.0F;
    for_each_vector(valid, [&](std::int64_t c, auto access)
                               HWY_ATTR { access.store(gradient(access.load(logits + c)), logits + c); });
    std::fill(logits + valid, logits + columns, T(0.0F));
    if (is_here) logits[target] = T(hn::GetLane(gradient(constant(target_logit))) - weight);  // rounded once
  }
}

using PartialsRows = void (*)(const CrossEntropyPartials&, std::int64_t, std::int64_t);
using BackwardRows = void (*)(const CrossEntropyBackward&, std::int64_t, std::int64_t);

PartialsRows partials_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> PartialsRows { return &partials_rows<T>; });
}

BackwardRows backward_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> BackwardRows { return &backward_rows<T>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(partials_kernel);
HWY_EXPORT(backward_kernel);

constexpr std::int64_t kRowGrain = block_size(4, 1);

}  // namespace

void CpuBackend::do_cross_entropy_partials(const CrossEntropyPartials& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(partials_kernel)(args.logits.dtype);
  parallel_for(args.logits.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) { kernel(args, begin, end); });
}

void CpuBackend::do_cross_entropy_rescale(const CrossEntropyRescale& args) {
  for (std::int64_t t = 0; t < args.sum.dim(0); ++t) {
    const float own = args.own_max.as<float>()[t], max = args.max.as<float>()[t];
    float& sum = args.sum.as<float>()[t];
    sum = std::isinf(own) ? 0.0F : sum * std::exp(own - max);
  }
}

void CpuBackend::do_cross_entropy_loss(const CrossEntropyLoss& args) {
  for (std::int64_t t = 0; t < args.loss.dim(0); ++t) {
    const float log_sum = std::log(args.sum.as<float>()[t]) + args.max.as<float>()[t];
    args.loss.as<float>()[t] = log_sum - args.target_logit.as<float>()[t];
  }
}

void CpuBackend::do_weighted_sum(const WeightedSum& args) {
  double sum = 0;
  for (std::int64_t t = 0; t < args.value.dim(0); ++t) {
    const auto value = static_cast<double>(args.value.as<float>()[t]);
    const double factor = args.count_below ? (value < *args.count_below ? 1.0 : 0.0) : value;
    sum += factor * static_cast<double>(args.weight.as<float>()[t]);
  }
  *args.total.as<double>() += sum;
}

void CpuBackend::do_cross_entropy_backward(const CrossEntropyBackward& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(backward_kernel)(args.logits.dtype);
  parallel_for(args.logits.dim(0), kRowGrain, [&](std::int64_t begin, std::int64_t end) { kernel(args, begin, end); });
}

}  // namespace teratron
#endif  // HWY_ONCE
