// Tallies: the sum of squares, the largest magnitude and the sum of bit patterns, in one pass over memory.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/tally.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

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

// Tally of a block. Highway's Max may lose a NaN, so that only the squares show it.
template <class T>
Tally tally_range(const void* data, std::int64_t begin, std::int64_t count) {
  const T* const values = static_cast<const T*>(data) + begin;
  const hn::RebindToUnsigned<FloatTag> words;
  FloatVector largest = constant(0);
  auto bits = hn::Zero(words);
  const float squares = sum_over(count, [&](std::int64_t i, auto access) HWY_ATTR {
    const FloatVector value = access.load(values + i);
    largest = hn::Max(largest, hn::Abs(value));
    if constexpr (sizeof(T) == sizeof(float)) {
      bits = hn::Add(bits, hn::BitCast(words, value));
    } else {
      bits = hn::Add(bits, hn::BitCast(words, access.load_halves(reinterpret_cast<const std::uint16_t*>(values + i))));
    }
    return hn::Mul(value, value);
  });
  return {
      .squares = double{squares}, .largest = max_of_lanes(largest), .bits = hn::GetLane(hn::SumOfLanes(words, bits))};
}

using TallyRange = Tally (*)(const void*, std::int64_t, std::int64_t);

TallyRange tally_kernel(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) -> TallyRange { return &tally_range<T>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(tally_kernel);

constexpr std::int64_t kTallyBlock = block_size(1 << 12, 2);  // squares added in fp32 before double takes over

Tally tally_of_doubles(const void* data, std::int64_t begin, std::int64_t count) {
  Tally tally;
  for (std::int64_t i = begin; i < begin + count; ++i) {
    const double value = static_cast<const double*>(data)[i];
    std::uint32_t words[2];
    std::memcpy(words, &value, sizeof(words));
    tally.squares += value * value;
    tally.largest = std::max(tally.largest, static_cast<float>(std::abs(value)));
    tally.bits += words[0] + words[1];
  }
  return tally;
}

}  // namespace

void CpuBackend::do_tally(const TensorRef& to, const TensorRef& from) {
  const std::int64_t count = from.elements();
  const auto of_block = from.dtype == DType::kF64 ? &tally_of_doubles : HWY_DYNAMIC_DISPATCH(tally_kernel)(from.dtype);
  std::vector<Tally> parts(static_cast<std::size_t>((count + kTallyBlock - 1) / kTallyBlock));
  parallel_for(count, 8 * kTallyBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; block += kTallyBlock) {
      parts[static_cast<std::size_t>(block / kTallyBlock)] =
          of_block(from.data, block, std::min(kTallyBlock, end - block));
    }
  });
  Tally& sum = *static_cast<Tally*>(to.data);
  for (const Tally& part : parts) {
    sum.squares += part.squares;
    if (!(part.largest <= sum.largest)) sum.largest = part.largest;
    sum.bits += part.bits;
  }
  if (std::isnan(sum.squares)) sum.largest = static_cast<float>(sum.squares);
}

}  // namespace teratron
#endif  // HWY_ONCE
