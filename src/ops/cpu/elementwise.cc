// Sums, dropout and the residual connection: one pass over memory each.
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/elementwise.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
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

void add_range(float* sum, const float* a, const float* b, std::int64_t count) { plain_add(sum, a, b, count); }

void dropout_add_range(float* sum, const float* residual, const float* branch, const Dropout& dropout,
                       std::int64_t first, std::int64_t count) {
  DropoutMask mask(dropout);
  dropout_add(sum, residual, branch, mask, first, count);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(add_range);
HWY_EXPORT(dropout_add_range);

constexpr std::int64_t kGrain = 1 << 14;  // elements handed to a thread at a time

// Calls body(offset, first, count) for runs of elements that are consecutive both in memory and in the whole tensor.
template <class Body>
void for_each_run(const TensorRef& view, const Dropout& dropout, const Body& body) {
  const std::int64_t tokens = view.dim(1), hidden = view.dim(2), sample = tokens * hidden;
  const std::int64_t rows_at_once = std::max(std::int64_t{1}, kGrain / hidden);
  const std::int64_t runs = (tokens + rows_at_once - 1) / rows_at_once;
  parallel_for(view.dim(0) * runs, 1, [&](std::int64_t run, std::int64_t) {
    const std::int64_t b = run / runs, t = run % runs * rows_at_once;
    body(b * sample + t * hidden, first_element(dropout, b, t, hidden), std::min(rows_at_once, tokens - t) * hidden);
  });
}

}  // namespace

void CpuBackend::do_add(const TensorRef& to, const TensorRef& from) {
  float* const sums = to.as<float>();
  const float* const addends = from.as<float>();
  parallel_for(to.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_range)(sums + begin, sums + begin, addends + begin, end - begin);
  });
}

void CpuBackend::do_residual_add(const ResidualAdd& args) {
  float* const sum = args.sum.as<float>();
  const float *const residual = args.residual.as<float>(), *const branch = args.branch.as<float>();
  for_each_run(args.sum, args.dropout, [&](std::int64_t offset, std::int64_t first, std::int64_t count) {
    if (args.dropout.active()) {
      HWY_DYNAMIC_DISPATCH(dropout_add_range)
      (sum + offset, residual + offset, branch + offset, args.dropout, first, count);
    } else {
      HWY_DYNAMIC_DISPATCH(add_range)(sum + offset, residual + offset, branch + offset, count);
    }
  });
}

void CpuBackend::do_dropout_backward(const TensorRef& dbranch, const TensorRef& dsum, const Dropout& dropout) {
  float* const to = dbranch.as<float>();
  const float* const from = dsum.as<float>();
  if (!dropout.active()) {
    if (to != from) do_copy(dbranch, dsum);
    return;
  }
  for_each_run(dsum, dropout, [&](std::int64_t offset, std::int64_t first, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(dropout_add_range)(to + offset, nullptr, from + offset, dropout, first, count);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
