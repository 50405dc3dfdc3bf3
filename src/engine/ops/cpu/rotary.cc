// Rotary positions, all heads of a token at a time.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/rotary.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// The first half of a head's rotated elements are those of the pairs' first elements.
template <class T>
void turn_halves(T* head, const float* cosines, const float* sines, std::int64_t pairs, float sign) {
  for_each_vector(pairs, [&](std::int64_t r, auto access) HWY_ATTR {
    const FloatVector a = access.load(head + r), b = access.load(head + pairs + r), cosine = access.load(cosines + r);
    const FloatVector sine = hn::Mul(constant(sign), access.load(sines + r));
    access.store(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), head + r);
    access.store(hn::MulAdd(b, cosine, hn::Mul(a, sine)), head + pairs + r);
  });
}

template <class T>
void turn_neighbours(T* head, const float* cosines, const float* sines, std::int64_t pairs, float sign) {
  for (std::int64_t r = 0; r < pairs; ++r) {
    const float a = head[2 * r], b = head[2 * r + 1], sine = sign * sines[r];
    head[2 * r] = static_cast<T>(a * cosines[r] - b * sine);
    head[2 * r + 1] = static_cast<T>(a * sine + b * cosines[r]);
  }
}

// Tokens [begin, end), numbered through the sequences.
template <class T>
void rotary_tokens(const Rotary& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t tokens = args.x.dim(1), pairs = args.table.dim(2);
  const auto turn = args.pairs == RotaryPairs::kHalves ? &turn_halves<T> : &turn_neighbours<T>;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t b = row / tokens, t = row % tokens;
    const std::int64_t position =
        args.position_ids ? args.position_ids.as<std::int32_t>()[row] : args.first_position + t;
    const float* const cosines = args.table.as<float>() + position * 2 * pairs;
    T* const token = args.x.as<T>() + b * args.x.stride(0) + t * args.x.stride(1);
    for (std::int64_t h = 0; h < args.x.dim(2); ++h) {
      turn(token + h * args.x.stride(2), cosines, cosines + pairs, pairs, args.inverse ? -1.0F : 1.0F);
    }
  }
}

using RotaryTokens = void (*)(const Rotary&, std::int64_t, std::int64_t);

RotaryTokens rotary_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> RotaryTokens { return &rotary_tokens<T>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(rotary_kernel);

constexpr std::int64_t kTokenGrain = block_size(16, 1);

}  // namespace

void CpuBackend::do_rotary(const Rotary& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(rotary_kernel)(args.x.dtype);
  parallel_for(args.x.dim(0) * args.x.dim(1), kTokenGrain,
               [&](std::int64_t begin, std::int64_t end) { kernel(args, begin, end); });
}

}  // namespace teratron
#endif  // HWY_ONCE
