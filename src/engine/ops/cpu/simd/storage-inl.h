// Loads and stores of float vectors: fp32 as it is, bf16 and fp16 converted, to nearest even with NaN kept, with the
// bits of base/dtype.h (whose NaN payloads of fp16 may differ). Highway 1.0.3's own conversion to bf16 truncates, and
// its fp16 is exact only where the processor converts. Compiled once per target, so the include guard toggles.
#if defined(TERATRON_OPS_CPU_STORAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_STORAGE_INL_H_
#undef TERATRON_OPS_CPU_STORAGE_INL_H_
#else
#define TERATRON_OPS_CPU_STORAGE_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "base/float_types.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
constexpr std::int64_t kFloatLanes = static_cast<std::int64_t>(HWY_LANES(float));
using WordTag = hn::ScalableTag<std::uint32_t>;  // of the bits of floats
using WordVector = hn::Vec<WordTag>;
using HalfTag = hn::Rebind<std::uint16_t, WordTag>;

// Loads as many elements as `d` has lanes.
template <class D>
HWY_INLINE hn::Vec<D> widen(D d, const float* from) {
  return hn::LoadU(d, from);
}
HWY_INLINE void narrow(FloatVector value, float* to) { hn::StoreU(value, FloatTag(), to); }

#if HWY_TARGET == HWY_SCALAR  // one lane, and no conversions by the processor

template <class D, class T>
HWY_INLINE hn::Vec<D> widen(D d, const T* from) {
  return hn::Set(d, float{*from});
}
template <class T>
HWY_INLINE void narrow(FloatVector value, T* to) {
  *to = T(hn::GetLane(value));
}
template <class T>
HWY_INLINE FloatVector as_stored(FloatVector value) {
  return hn::Set(FloatTag(), float{T(hn::GetLane(value))});
}

#else

template <class D>
HWY_INLINE hn::Vec<D> widen(D d, const Bf16* from) {
  const hn::Rebind<std::uint16_t, D> halves;
  const hn::Rebind<std::uint32_t, D> words;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> widen(D d, const F16* from) {
  const hn::Rebind<std::uint16_t, D> halves;
  const hn::Rebind<hwy::float16_t, D> values;
  return hn::PromoteTo(d, hn::BitCast(values, hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(from))));
}

// The upper 16 bits of each word are the value in bf16.
HWY_INLINE auto bf16_words(FloatVector value) {
  const hn::RebindToUnsigned<FloatTag> words;
  const auto bits = hn::BitCast(words, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000));
  return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(value)), quiet, rounded);
}

HWY_INLINE void narrow(FloatVector value, Bf16* to) {
  const hn::Rebind<std::uint16_t, FloatTag> halves;
  const hn::RebindToSigned<FloatTag> integers;
  const auto bits = hn::BitCast(integers, hn::ShiftRight<16>(bf16_words(value)));
  hn::StoreU(hn::DemoteTo(halves, bits), halves, reinterpret_cast<std::uint16_t*>(to));
}

HWY_INLINE void narrow(FloatVector value, F16* to) {
  const hn::Rebind<std::uint16_t, FloatTag> halves;
  const hn::Rebind<hwy::float16_t, FloatTag> values;
  hn::StoreU(hn::BitCast(halves, hn::DemoteTo(values, value)), halves, reinterpret_cast<std::uint16_t*>(to));
}

// The value that would be read back after it was stored as T.
template <class T>
HWY_INLINE FloatVector as_stored(FloatVector value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const hn::RebindToUnsigned<FloatTag> words;
    return hn::BitCast(FloatTag(), hn::And(bf16_words(value), hn::Set(words, 0xFFFF0000)));
  } else if constexpr (std::is_same_v<T, F16>) {
    const hn::Rebind<hwy::float16_t, FloatTag> values;
    return hn::PromoteTo(FloatTag(), hn::DemoteTo(values, value));
  } else {
    return value;
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
