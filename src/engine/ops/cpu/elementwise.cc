// Sums, activations, dropout and the residual connection: one pass over memory each.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/elementwise.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/simd/dropout-inl.h"
#include "ops/cpu/simd/math-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/ref/memory.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void add_range(void* sum, const void* a, const void* b, std::int64_t begin, std::int64_t count) {
  plain_add(static_cast<T*>(sum) + begin, static_cast<const T*>(a) + begin, static_cast<const T*>(b) + begin, count);
}

template <class T>
void dropout_add_range(const DropoutRange& range, std::int64_t begin, std::int64_t first, std::int64_t count) {
  DropoutMask mask(range.dropout);
  const T* const residual = range.residual == nullptr ? nullptr : static_cast<const T*>(range.residual) + begin;
  dropout_add(static_cast<T*>(range.sum) + begin, residual, static_cast<const T*>(range.branch) + begin, mask, first,
              count);
}

struct Relu {
  static HWY_INLINE FloatVector value(FloatVector x) {
    return hn::IfThenElse(hn::Lt(x, constant(0.0F)), constant(0.0F), x);  // NaN stays NaN
  }
  static HWY_INLINE ValueAndSlope value_and_slope(FloatVector x) {
    const FloatVector zero = constant(0.0F);
    return {value(x), hn::IfThenElse(hn::Gt(x, zero), constant(1.0F), zero)};
  }
};

// Calls use(the activation's functions: GeluTanh, GeluErf, Silu, Relu or Tanh).
template <class Use>
HWY_INLINE void with_function_of(Activation activation, const Use& use) {
  if (activation == Activation::kGeluTanh) return use(GeluTanh());
  if (activation == Activation::kGeluErf) return use(GeluErf());
  if (activation == Activation::kSilu) return use(Silu());
  if (activation == Activation::kRelu) return use(Relu());
  use(Tanh());
}

template <class T>
void activation_forward(const ActivationForward& args, std::int64_t begin, std::int64_t end) {
  T* const y = args.y.as<T>() + begin;
  const T* const x = args.x.as<T>() + begin;
  with_function_of(args.activation, [&]<class Function>(Function) {
    for_each_vector(end - begin, [&](std::int64_t e, auto access)
                                     HWY_ATTR { access.store(Function::value(access.load(x + e)), y + e); });
  });
}

template <class T>
void activation_backward(const ActivationBackward& args, std::int64_t begin, std::int64_t end) {
  T* const dx = args.dx.as<T>() + begin;
  const T *const dy = args.dy.as<T>() + begin, *const x = args.x.as<T>() + begin;
  with_function_of(args.activation, [&]<class Function>(Function) {
    for_each_vector(end - begin, [&](std::int64_t e, auto access) HWY_ATTR {
      access.store(hn::Mul(access.load(dy + e), Function::value_and_slope(access.load(x + e)).slope), dx + e);
    });
  });
}

// Factors of about 1, for which keep * to is computed as to + (keep - 1) * to: they lose no digits to fp32 so, and
// small ones would lose all.
constexpr double kLeastNearOne = 0.5, kMostNearOne = 2;

template <class To, class From>
void scale_add_range(const ScaleAddRange& range, std::int64_t begin, std::int64_t end) {
  To* const to = range.to.as<To>() + begin;
  const From* const from = range.from.as<From>() + begin;
  const auto scale = hn::Set(FloatTag(), static_cast<float>(range.scale));
  if (range.keep == 0) {
    return for_each_vector(end - begin, [&](std::int64_t e, auto access)
                                            HWY_ATTR { access.store(hn::Mul(scale, access.load(from + e)), to + e); });
  }
  if (range.keep < kLeastNearOne || range.keep > kMostNearOne) {
    const auto keep = hn::Set(FloatTag(), static_cast<float>(range.keep));
    return for_each_vector(end - begin, [&](std::int64_t e, auto access) HWY_ATTR {
      access.store(hn::MulAdd(keep, access.load(to + e), hn::Mul(scale, access.load(from + e))), to + e);
    });
  }
  const auto grow = hn::Set(FloatTag(), static_cast<float>(range.keep - 1));
  for_each_vector(end - begin, [&](std::int64_t e, auto access) HWY_ATTR {
    const auto kept = access.load(to + e);
    access.store(hn::Add(kept, hn::MulAdd(grow, kept, hn::Mul(scale, access.load(from + e)))), to + e);
  });
}

ScaleAdd scale_add_kernel(DType to, DType from) {
  return choose_by_storage(to, [&]<class To>(ElementType<To>) {
    return choose_by_storage(from,
                             []<class From>(ElementType<From>) -> ScaleAdd { return &scale_add_range<To, From>; });
  });
}

ElementwiseKernels elementwise_kernels(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) {
    return ElementwiseKernels{&activation_forward<T>, &activation_backward<T>, &add_range<T>, &dropout_add_range<T>};
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(elementwise_kernels);
HWY_EXPORT(scale_add_kernel);

constexpr std::int64_t kGrain = block_size(1 << 14, 2);  // elements handed to a thread at a time

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
  if (to.dtype == DType::kF64) {
    for (std::int64_t e = 0; e < to.elements(); ++e) to.as<double>()[e] += from.as<double>()[e];
    return;
  }
  const ElementwiseKernels kernels = HWY_DYNAMIC_DISPATCH(elementwise_kernels)(to.dtype);
  parallel_for(to.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.add(to.data, to.data, from.data, begin, end - begin);
  });
}

void CpuBackend::do_scale_add(const TensorRef& to, double keep, const TensorRef& from, double scale) {
  if (to.dtype == DType::kF64 || from.dtype == DType::kF64) {
    return visit_floating(to.dtype, [&]<class To>(ElementType<To>) {
      visit_floating(from.dtype,
                     [&]<class From>(ElementType<From>) { reference::scale_add<To, From>(to, keep, from, scale); });
    });
  }
  const ScaleAdd kernel = HWY_DYNAMIC_DISPATCH(scale_add_kernel)(to.dtype, from.dtype);
  const ScaleAddRange range{to, keep, from, scale};
  parallel_for(to.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) { kernel(range, begin, end); });
}

void CpuBackend::do_activation_forward(const ActivationForward& args) {
  const ElementwiseKernels kernels = HWY_DYNAMIC_DISPATCH(elementwise_kernels)(args.x.dtype);
  parallel_for(args.x.elements(), kGrain,
               [&](std::int64_t begin, std::int64_t end) { kernels.activation_forward(args, begin, end); });
}

void CpuBackend::do_activation_backward(const ActivationBackward& args) {
  const ElementwiseKernels kernels = HWY_DYNAMIC_DISPATCH(elementwise_kernels)(args.x.dtype);
  parallel_for(args.x.elements(), kGrain,
               [&](std::int64_t begin, std::int64_t end) { kernels.activation_backward(args, begin, end); });
}

void CpuBackend::do_residual_add(const ResidualAdd& args) {
  const ElementwiseKernels kernels = HWY_DYNAMIC_DISPATCH(elementwise_kernels)(args.sum.dtype);
  const DropoutRange range{args.sum.data, args.residual.data, args.branch.data, args.dropout};
  for_each_run(args.sum, args.dropout, [&](std::int64_t offset, std::int64_t first, std::int64_t count) {
    if (args.dropout.active()) {
      kernels.dropout_add(range, offset, first, count);
    } else {
      kernels.add(range.sum, range.residual, range.branch, offset, count);
    }
  });
}

void CpuBackend::do_dropout_backward(const DropoutBackward& args) {
  const auto& [dbranch, dsum, dropout] = args;
  if (!dropout.active()) {
    if (dbranch.data != dsum.data) do_copy(dbranch, dsum);
    return;
  }
  const ElementwiseKernels kernels = HWY_DYNAMIC_DISPATCH(elementwise_kernels)(dsum.dtype);
  const DropoutRange range{dbranch.data, nullptr, dsum.data, dropout};
  for_each_run(dsum, dropout, [&](std::int64_t offset, std::int64_t first, std::int64_t count) {
    kernels.dropout_add(range, offset, first, count);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
