// The AdamW update (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2) in one pass: 28 bytes moved per parameter,
// and what the working copy takes.
// And the sum of squares that the gradient norm is made of.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/adamw.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <numeric>

#include "base/block_size.h"
#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// T: of the working copy, if there is one.
template <class T, bool has_working>
void adamw_range(const AdamW& args, const AdamWParameter& of, std::int64_t begin, std::int64_t end) {
  float* const value = of.value.as<float>() + begin;
  const float* const gradient = of.gradient.as<float>() + begin;
  float *const moment1 = of.moment1.as<float>() + begin, *const moment2 = of.moment2.as<float>() + begin;
  T* const working = has_working ? of.working.as<T>() + begin : nullptr;
  const auto rounded = [](double number) HWY_ATTR { return constant(static_cast<float>(number)); };
  const FloatVector scale = rounded(args.gradient_scale), epsilon = rounded(args.epsilon);
  const FloatVector beta1 = rounded(args.beta1), rest1 = rounded(1 - args.beta1);
  const FloatVector beta2 = rounded(args.beta2), rest2 = rounded(1 - args.beta2);
  const FloatVector inverse2 = rounded(1 / args.correction2);
  const FloatVector keep = rounded(1 - args.learning_rate * of.weight_decay);
  const FloatVector rate = rounded(args.learning_rate / args.correction1);
  for_each_vector(end - begin, [&](std::int64_t i, auto access) HWY_ATTR {
    const FloatVector g = hn::Mul(scale, access.load(gradient + i));
    const FloatVector m = hn::MulAdd(beta1, access.load(moment1 + i), hn::Mul(rest1, g));
    const FloatVector v = hn::MulAdd(beta2, access.load(moment2 + i), hn::Mul(hn::Mul(rest2, g), g));
    const FloatVector root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), epsilon);
    const FloatVector decayed = hn::Mul(keep, access.load(value + i));
    const FloatVector updated = hn::Sub(decayed, hn::Div(hn::Mul(rate, m), root));
    access.store(updated, value + i);
    if constexpr (has_working) access.store(updated, working + i);
    access.store(m, moment1 + i);
    access.store(v, moment2 + i);
  });
}

template <class T>
float sum_of_squares_range(const void* data, std::int64_t begin, std::int64_t count) {
  const T* const values = static_cast<const T*>(data) + begin;
  return sum_over(count, [&](std::int64_t i, auto access) HWY_ATTR {
    const FloatVector value = access.load(values + i);
    return hn::Mul(value, value);
  });
}

using AdamWRange = void (*)(const AdamW&, const AdamWParameter&, std::int64_t, std::int64_t);
using SquaresRange = float (*)(const void*, std::int64_t, std::int64_t);

AdamWRange adamw_kernel(const TensorRef& working) {
  if (!working) return &adamw_range<float, false>;
  return choose_by_storage(working.dtype, []<class T>(ElementType<T>) -> AdamWRange { return &adamw_range<T, true>; });
}

SquaresRange sum_of_squares_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> SquaresRange { return &sum_of_squares_range<T>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(adamw_kernel);
HWY_EXPORT(sum_of_squares_kernel);

constexpr std::int64_t kGrain = block_size(1 << 15, 2);         // parameters handed to a thread at a time
constexpr std::int64_t kSquaresBlock = block_size(1 << 12, 2);  // squares added in fp32 before double takes over

double sum_of_view(const TensorRef& view) {
  const std::int64_t count = view.elements();
  if (view.dtype == DType::kF64) {
    const double* const values = view.as<double>();
    return std::inner_product(values, values + count, values, 0.0);
  }
  const auto kernel = HWY_DYNAMIC_DISPATCH(sum_of_squares_kernel)(view.dtype);
  float* const parts = scratch_floats(Scratch::kReduction, (count + kSquaresBlock - 1) / kSquaresBlock);
  parallel_for(count, 8 * kSquaresBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; block += kSquaresBlock) {
      parts[block / kSquaresBlock] = kernel(view.data, block, std::min(kSquaresBlock, end - block));
    }
  });
  double sum = 0;
  for (std::int64_t block = 0; block * kSquaresBlock < count; ++block) sum += double{parts[block]};
  return sum;
}

}  // namespace

void CpuBackend::do_adamw(const AdamW& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(adamw_kernel)(args.parameters.front().working);
  for (const AdamWParameter& of : args.parameters) {
    parallel_for(of.value.elements(), kGrain,
                 [&](std::int64_t begin, std::int64_t end) { kernel(args, of, begin, end); });
  }
}

double CpuBackend::do_sum_of_squares(std::span<const TensorRef> views) {
  double sum = 0;
  for (const TensorRef& view : views) sum += sum_of_view(view);
  return sum;
}

}  // namespace teratron
#endif  // HWY_ONCE
