// The AdamW update (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2) in one pass: 28 bytes moved per parameter.
// And the sum of squares that the gradient norm is made of.
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/adamw.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

void adamw_range(const AdamW& args, std::int64_t begin, std::int64_t end) {
  float* const parameter = args.parameter.as<float>() + begin;
  const float* const gradient = args.gradient.as<float>() + begin;
  float *const moment1 = args.moment1.as<float>() + begin, *const moment2 = args.moment2.as<float>() + begin;
  const auto rounded = [](double value) HWY_ATTR { return constant(static_cast<float>(value)); };
  const FloatVector scale = rounded(args.gradient_scale), epsilon = rounded(args.epsilon);
  const FloatVector beta1 = rounded(args.beta1), rest1 = rounded(1 - args.beta1);
  const FloatVector beta2 = rounded(args.beta2), rest2 = rounded(1 - args.beta2);
  const FloatVector inverse2 = rounded(1 / args.correction2);
  const FloatVector keep = rounded(1 - args.learning_rate * args.weight_decay);
  const FloatVector rate = rounded(args.learning_rate / args.correction1);
  for_each_vector(end - begin, [&](std::int64_t i, auto access) HWY_ATTR {
    const FloatVector g = hn::Mul(scale, access.load(gradient + i));
    const FloatVector m = hn::MulAdd(beta1, access.load(moment1 + i), hn::Mul(rest1, g));
    const FloatVector v = hn::MulAdd(beta2, access.load(moment2 + i), hn::Mul(hn::Mul(rest2, g), g));
    const FloatVector root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), epsilon);
    const FloatVector decayed = hn::Mul(keep, access.load(parameter + i));
    access.store(hn::Sub(decayed, hn::Div(hn::Mul(rate, m), root)), parameter + i);
    access.store(m, moment1 + i);
    access.store(v, moment2 + i);
  });
}

float sum_of_squares_range(const float* values, std::int64_t count) {
  return sum_over(count, [&](std::int64_t i, auto access) HWY_ATTR {
    const FloatVector value = access.load(values + i);
    return hn::Mul(value, value);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(adamw_range);
HWY_EXPORT(sum_of_squares_range);

constexpr std::int64_t kGrain = 1 << 15;         // parameters handed to a thread at a time
constexpr std::int64_t kSquaresBlock = 1 << 12;  // squares added in fp32 before double takes over

}  // namespace

void CpuBackend::do_adamw(const AdamW& args) {
  parallel_for(args.parameter.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(adamw_range)(args, begin, end);
  });
}

double CpuBackend::do_sum_of_squares(const TensorRef& view) {
  const float* const values = view.as<float>();
  const std::int64_t count = view.elements();
  float* const parts = scratch_floats(Scratch::kReduction, (count + kSquaresBlock - 1) / kSquaresBlock);
  parallel_for(count, 8 * kSquaresBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; block += kSquaresBlock) {
      parts[block / kSquaresBlock] =
          HWY_DYNAMIC_DISPATCH(sum_of_squares_range)(values + block, std::min(kSquaresBlock, end - block));
    }
  });
  double sum = 0;
  for (std::int64_t block = 0; block * kSquaresBlock < count; ++block) sum += double{parts[block]};
  return sum;
}

}  // namespace teratron
#endif  // HWY_ONCE
