// Loops over float vectors of whatever width the target has. Compiled once per target (Highway's foreach_target), so
// the include guard toggles.
#if defined(TERATRON_OPS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_SIMD_INL_H_
#undef TERATRON_OPS_CPU_SIMD_INL_H_
#else
#define TERATRON_OPS_CPU_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "ops/cpu/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {

// Access to memory in for_each_vector's body: a whole vector, or the last elements of a row (the other lanes read as
// zero and are not written; nothing outside of the row is touched, which masked loads do not promise everywhere).
// Pointers are to float, Bf16 or F16.
struct WholeVector {
  template <class T>
  HWY_INLINE FloatVector load(const T* from) const {
    return widen(FloatTag(), from);
  }
  template <class T>
  HWY_INLINE void store(FloatVector value, T* to) const {
    narrow(value, to);
  }
  // 16 bits each, the lower half of a word.
  HWY_INLINE WordVector load_halves(const std::uint16_t* from) const {
    return hn::PromoteTo(WordTag(), hn::LoadU(HalfTag(), from));
  }
  HWY_INLINE void store_halves(WordVector words, std::uint16_t* to) const {
    hn::StoreU(hn::TruncateTo(HalfTag(), words), HalfTag(), to);
  }
  HWY_INLINE FloatVector keep(FloatVector value) const { return value; }
};

struct PartOfVector {
  std::int64_t count;
  template <class T>
  HWY_INLINE FloatVector load(const T* from) const {
    HWY_ALIGN T lanes[kFloatLanes] = {};
    std::memcpy(lanes, from, static_cast<std::size_t>(count) * sizeof(T));
    return widen(FloatTag(), lanes);
  }
  template <class T>
  HWY_INLINE void store(FloatVector value, T* to) const {
    HWY_ALIGN T lanes[kFloatLanes];
    narrow(value, lanes);
    std::memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(T));
  }
  HWY_INLINE WordVector load_halves(const std::uint16_t* from) const {
    HWY_ALIGN std::uint16_t lanes[kFloatLanes] = {};
    std::memcpy(lanes, from, static_cast<std::size_t>(count) * sizeof(std::uint16_t));
    return WholeVector().load_halves(lanes);
  }
  HWY_INLINE void store_halves(WordVector words, std::uint16_t* to) const {
    HWY_ALIGN std::uint16_t lanes[kFloatLanes];
    WholeVector().store_halves(words, lanes);
    std::memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(std::uint16_t));
  }
  // The value with zero in the lanes beyond the row.
  HWY_INLINE FloatVector keep(FloatVector value) const {
    return hn::IfThenElseZero(hn::FirstN(FloatTag(), static_cast<std::size_t>(count)), value);
  }
};

// Calls body(index, access) for index 0, lanes, 2 * lanes, ... below count.
template <class Body>
HWY_INLINE void for_each_vector(std::int64_t count, const Body& body) {
  std::int64_t index = 0;
  for (; index + kFloatLanes <= count; index += kFloatLanes) body(index, WholeVector());
  if (index < count) body(index, PartOfVector{count - index});
}

HWY_INLINE FloatVector constant(float value) { return hn::Set(FloatTag(), value); }

HWY_INLINE float sum_of_lanes(FloatVector value) { return hn::GetLane(hn::SumOfLanes(FloatTag(), value)); }
HWY_INLINE float max_of_lanes(FloatVector value) { return hn::GetLane(hn::MaxOfLanes(FloatTag(), value)); }

template <class Sum, class A, class B>
HWY_INLINE void plain_add(Sum* sum, const A* a, const B* b, std::int64_t count) {
  for_each_vector(count, [&](std::int64_t i, auto access)
                             HWY_ATTR { access.store(hn::Add(access.load(a + i), access.load(b + i)), sum + i); });
}

// A row as fp32.
template <class T>
HWY_INLINE void widen_row(const T* from, std::int64_t count, float* to) {
  for_each_vector(count, [&](std::int64_t i, auto access) HWY_ATTR { access.store(access.load(from + i), to + i); });
}

// The largest value of a row; NaN may be overlooked.
template <class T>
HWY_INLINE float max_of(const T* values, std::int64_t count) {
  float max = -std::numeric_limits<float>::infinity();
  FloatVector max0 = constant(max), max1 = max0, max2 = max0, max3 = max0;
  std::int64_t i = 0;
  for (; i + 4 * kFloatLanes <= count; i += 4 * kFloatLanes) {
    max0 = hn::Max(max0, widen(FloatTag(), values + i));
    max1 = hn::Max(max1, widen(FloatTag(), values + i + kFloatLanes));
    max2 = hn::Max(max2, widen(FloatTag(), values + i + 2 * kFloatLanes));
    max3 = hn::Max(max3, widen(FloatTag(), values + i + 3 * kFloatLanes));
  }
  for (; i + kFloatLanes <= count; i += kFloatLanes) max0 = hn::Max(max0, widen(FloatTag(), values + i));
  if (i < count && count >= kFloatLanes) {  // the row's last vector, some of which was seen
    max1 = hn::Max(max1, widen(FloatTag(), values + count - kFloatLanes));
  } else {
    for (; i < count; ++i) max = std::max(max, float{values[i]});
  }
  return std::max(max, max_of_lanes(hn::Max(hn::Max(max0, max1), hn::Max(max2, max3))));
}

// The sum of term(index, access) over a row, in four independent chains of additions.
template <class Term>
HWY_INLINE float sum_over(std::int64_t count, const Term& term) {
  FloatVector sum0 = constant(0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  std::int64_t index = 0;
  for (; index + 4 * kFloatLanes <= count; index += 4 * kFloatLanes) {
    sum0 = hn::Add(sum0, term(index, WholeVector()));
    sum1 = hn::Add(sum1, term(index + kFloatLanes, WholeVector()));
    sum2 = hn::Add(sum2, term(index + 2 * kFloatLanes, WholeVector()));
    sum3 = hn::Add(sum3, term(index + 3 * kFloatLanes, WholeVector()));
  }
  for (; index + kFloatLanes <= count; index += kFloatLanes) sum0 = hn::Add(sum0, term(index, WholeVector()));
  if (index < count) {
    const PartOfVector part{count - index};
    sum1 = hn::Add(sum1, part.keep(term(index, part)));
  }
  return sum_of_lanes(hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
