#include "ops/cpu/conversion.h"

#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/conversion.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

template <class To, class From>
void convert_row(std::byte* to, const std::byte* from, std::int64_t count) {
  To* const results = reinterpret_cast<To*>(to);
  const From* const values = reinterpret_cast<const From*>(from);
  for_each_vector(count,
                  [&](std::int64_t i, auto access) HWY_ATTR { access.store(access.load(values + i), results + i); });
}

CopyRow vector_conversion(DType to, DType from) {
  return choose_by_storage(to, [&]<class To>(ElementType<To>) {
    return choose_by_storage(from, []<class From>(ElementType<From>) -> CopyRow { return &convert_row<To, From>; });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(vector_conversion);

template <class To, class From>
void convert_one_by_one(std::byte* to, const std::byte* from, std::int64_t count) {
  To* const results = reinterpret_cast<To*>(to);
  const From* const values = reinterpret_cast<const From*>(from);
  for (std::int64_t i = 0; i < count; ++i) results[i] = static_cast<To>(values[i]);
}

}  // namespace

CopyRow conversion(DType to, DType from) {
  if (from == DType::kF64) {
    return visit_floating(to, []<class To>(ElementType<To>) -> CopyRow { return &convert_one_by_one<To, double>; });
  }
  if (to == DType::kF64) {
    return choose_by_storage(
        from, []<class From>(ElementType<From>) -> CopyRow { return &convert_one_by_one<double, From>; });
  }
  return HWY_DYNAMIC_DISPATCH(vector_conversion)(to, from);
}

}  // namespace teratron
#endif  // HWY_ONCE
