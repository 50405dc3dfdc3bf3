// How the blocks of a linear layer's products are finished while they are in cache: bias, activation and gate, and
// their gradients. Compiled once per target, so the include guard toggles.
#if defined(TERATRON_OPS_CPU_LINEAR_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_LINEAR_BLOCKS_INL_H_
#undef TERATRON_OPS_CPU_LINEAR_BLOCKS_INL_H_
#else
#define TERATRON_OPS_CPU_LINEAR_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/products/gemm.h"
#include "ops/cpu/simd/math-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/operations.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

template <class T>
T* at(const TensorRef& view, std::int64_t row, std::int64_t column) {
  return view ? view.as<T>() + row * view.dim(1) + column : nullptr;
}

struct NoActivation {};

// Calls use(an activation of simd/math-inl.h, or NoActivation).
template <class Use>
void with_activation(Activation activation, const Use& use) {
  if (activation == Activation::kGeluTanh) return use(GeluTanh());
  if (activation == Activation::kGeluErf) return use(GeluErf());
  if (activation == Activation::kSilu) return use(Silu());
  use(NoActivation());
}

// activation(y), or activation(gate) * y where there is a gate, at column `at`.
template <class A, class T, class Access>
HWY_INLINE FloatVector gated(FloatVector y, const T* gate, std::int64_t at, Access access) {
  return gate == nullptr ? A::value(y) : hn::Mul(A::value(access.load(gate + at)), y);
}

template <class T, class A>
void store_outputs(const LinearForward& args, const GemmBlock& block, const GemmSums& sums) {
  const T* const bias = args.bias ? args.bias.as<T>() + block.column_begin : nullptr;
  for (std::int64_t t = 0; t < block.rows(); ++t) {
    const float* const row = sums.data + t * sums.stride;
    T* const y = at<T>(args.y, block.row_begin + t, block.column_begin);
    T* const activated = at<T>(args.activated, block.row_begin + t, block.column_begin);
    const T* const gate = at<T>(args.gate, block.row_begin + t, block.column_begin);
    for_each_vector(block.columns(), [&](std::int64_t o, auto access) HWY_ATTR {
      FloatVector u = access.load(row + o);
      if (bias != nullptr) u = hn::Add(u, access.load(bias + o));
      access.store(u, y + o);
      if constexpr (!std::is_same_v<A, NoActivation>) {
        access.store(gated<A>(as_stored<T>(u), gate, o, access), activated + o);
      }
    });
  }
}

// Finishes a row at a time by the processor's rounding to bf16, which Highway's vectors lack. Overwrites the sums.
template <class A>
void round_outputs(const LinearForward& args, const GemmBlock& block, const GemmSums& sums) {
  const Bf16* const bias = args.bias ? args.bias.as<Bf16>() + block.column_begin : nullptr;
  for (std::int64_t t = 0; t < block.rows(); ++t) {
    float* const row = sums.data + t * sums.stride;
    Bf16* const y = at<Bf16>(args.y, block.row_begin + t, block.column_begin);
    round_to_bf16(row, block.columns(), y, bias);
    if constexpr (!std::is_same_v<A, NoActivation>) {
      const Bf16* const gate = at<Bf16>(args.gate, block.row_begin + t, block.column_begin);
      for_each_vector(block.columns(), [&](std::int64_t o, auto access) HWY_ATTR {
        access.store(gated<A>(access.load(y + o), gate, o, access), row + o);
      });
      round_to_bf16(row, block.columns(), at<Bf16>(args.activated, block.row_begin + t, block.column_begin));
    }
  }
}

inline void finish_bf16_forward_block(const LinearForward& args, const GemmBlock& block, const GemmSums& sums) {
  with_activation(args.activation, [&]<class A>(A) { round_outputs<A>(args, block, sums); });
}

// y = sums + bias (if any); activated = activation(y) (if any).
template <class T>
void finish_forward_block(const LinearForward& args, const GemmBlock& block, const GemmSums& sums) {
  const void* const y = at<T>(args.y, block.row_begin, block.column_begin);
  if (args.activation == Activation::kNone && sums.data == y && !args.bias) return;  // the sums are y
  with_activation(args.activation, [&]<class A>(A) { store_outputs<T, A>(args, block, sums); });
}

// The gradients of one vector of a linear layer's input x = activation(u) or, with a gate, x = activation(gate) * u.
struct ActivationGradients {
  FloatVector dx, dgate, activated;
};

template <class A, class T, class Access>
HWY_INLINE ActivationGradients differentiate_activation(FloatVector sum, FloatVector u, const T* gate, std::int64_t at,
                                                        Access access) {
  if (gate == nullptr) {
    const ValueAndSlope value = A::value_and_slope(u);
    return {hn::Mul(value.slope, sum), sum, value.value};
  }
  const ValueAndSlope open = A::value_and_slope(access.load(gate + at));
  return {hn::Mul(open.value, sum), hn::Mul(hn::Mul(open.slope, u), sum), hn::Mul(open.value, u)};
}

template <class T, class A>
void store_gradients(const LinearInputGradient& args, const GemmBlock& block, const GemmSums& sums) {
  for (std::int64_t t = 0; t < block.rows(); ++t) {
    const float* const row = sums.data + t * sums.stride;
    const std::int64_t first = block.row_begin + t;
    T* const dx = at<T>(args.dx, first, block.column_begin);
    const T* const pre_activation = at<T>(args.pre_activation, first, block.column_begin);
    T* const activated = at<T>(args.activated, first, block.column_begin);
    const T* const gate = at<T>(args.gate, first, block.column_begin);
    T* const dgate = at<T>(args.dgate, first, block.column_begin);
    for_each_vector(block.columns(), [&](std::int64_t i, auto access) HWY_ATTR {
      if constexpr (std::is_same_v<A, NoActivation>) {
        access.store(access.load(row + i), dx + i);
      } else {
        const ActivationGradients gradients =
            differentiate_activation<A>(access.load(row + i), access.load(pre_activation + i), gate, i, access);
        if (activated != nullptr) access.store(gradients.activated, activated + i);
        access.store(gradients.dx, dx + i);
        if (dgate != nullptr) access.store(gradients.dgate, dgate + i);
      }
    });
  }
}

// Finishes a part of a row at a time by the processor's rounding to bf16. Overwrites the sums.
template <class A>
void round_gradients(const LinearInputGradient& args, const GemmBlock& block, const GemmSums& sums) {
  constexpr std::int64_t kPart = 256;
  HWY_ALIGN float values[kPart], gate_gradients[kPart];
  for (std::int64_t t = 0; t < block.rows(); ++t) {
    for (std::int64_t begin = 0; begin < block.columns(); begin += kPart) {
      float* const row = sums.data + t * sums.stride + begin;
      const std::int64_t first = block.row_begin + t, column = block.column_begin + begin;
      const std::int64_t count = std::min(kPart, block.columns() - begin);
      if constexpr (!std::is_same_v<A, NoActivation>) {
        const Bf16* const pre_activation = at<Bf16>(args.pre_activation, first, column);
        const Bf16* const gate = at<Bf16>(args.gate, first, column);
        for_each_vector(count, [&](std::int64_t i, auto access) HWY_ATTR {
          const ActivationGradients gradients =
              differentiate_activation<A>(access.load(row + i), access.load(pre_activation + i), gate, i, access);
          access.store(gradients.activated, values + i);
          if (gate != nullptr) access.store(gradients.dgate, gate_gradients + i);
          access.store(gradients.dx, row + i);
        });
        if (args.activated) round_to_bf16(values, count, at<Bf16>(args.activated, first, column));
        if (gate != nullptr) round_to_bf16(gate_gradients, count, at<Bf16>(args.dgate, first, column));
      }
      round_to_bf16(row, count, at<Bf16>(args.dx, first, column));
    }
  }
}

inline void finish_bf16_gradient_block(const LinearInputGradient& args, const GemmBlock& block, const GemmSums& sums) {
  with_activation(args.activation, [&]<class A>(A) { round_gradients<A>(args, block, sums); });
}

template <class T>
void finish_gradient_block(const LinearInputGradient& args, const GemmBlock& block, const GemmSums& sums) {
  const void* const dx = at<T>(args.dx, block.row_begin, block.column_begin);
  if (args.activation == Activation::kNone && sums.data == dx) return;  // the sums are dx
  with_activation(args.activation, [&]<class A>(A) { store_gradients<T, A>(args, block, sums); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
