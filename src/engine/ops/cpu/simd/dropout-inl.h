// The dropout mask of struct Dropout (ops/operations.h), several Philox blocks at a time. Compiled once per target, so
// the include guard toggles.
#if defined(TERATRON_OPS_CPU_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_DROPOUT_INL_H_
#undef TERATRON_OPS_CPU_DROPOUT_INL_H_
#else
#define TERATRON_OPS_CPU_DROPOUT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "base/block_size.h"
#include "hwy/highway.h"
#include "ops/backend.h"
#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {

// The upper 32 bits of each product.
HWY_INLINE WordVector multiply_high(WordVector a, WordVector b) {
#if HWY_TARGET == HWY_SCALAR  // has no vector of wider elements
  return hn::Set(WordTag(), static_cast<std::uint32_t>((std::uint64_t{hn::GetLane(a)} * hn::GetLane(b)) >> 32));
#else
  const hn::RepartitionToWide<WordTag> wide;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(WordTag(), hn::ShiftRight<32>(hn::BitCast(wide, a))),
                               hn::BitCast(WordTag(), hn::ShiftRight<32>(hn::BitCast(wide, b))));
  return hn::OddEven(hn::BitCast(WordTag(), odd), hn::BitCast(WordTag(), hn::ShiftRight<32>(even)));
#endif
}

// Philox4x32-10 (base/philox.h) of the blocks first_block, first_block + 1, ..., one per lane; their 8 16-bit lanes
// each are written in order.
HWY_INLINE void philox_blocks(const RandomStream& random, std::uint64_t first_block, std::uint16_t* bits) {
  const WordTag d;
  const auto low = static_cast<std::uint32_t>(first_block), high = static_cast<std::uint32_t>(first_block >> 32);
  WordVector c0 = hn::Add(hn::Iota(d, 0), hn::Set(d, low));
  const WordVector one_if_carried = hn::IfThenElseZero(hn::Lt(c0, hn::Set(d, low)), hn::Set(d, 1));
  WordVector c1 = hn::Add(hn::Set(d, high), one_if_carried);
  WordVector c2 = hn::Set(d, random.step);
  WordVector c3 = hn::Set(d, (static_cast<std::uint32_t>(random.purpose) << 24) | random.stream);
  auto key0 = static_cast<std::uint32_t>(random.seed), key1 = static_cast<std::uint32_t>(random.seed >> 32);
  const WordVector multiplier_a = hn::Set(d, kPhiloxMultiplierA), multiplier_b = hn::Set(d, kPhiloxMultiplierB);
  for (int round = 0; round < 10; ++round) {
    const WordVector a_high = multiply_high(c0, multiplier_a), a_low = hn::Mul(c0, multiplier_a);
    const WordVector b_high = multiply_high(c2, multiplier_b), b_low = hn::Mul(c2, multiplier_b);
    c0 = hn::Xor(hn::Xor(b_high, c1), hn::Set(d, key0));
    c2 = hn::Xor(hn::Xor(a_high, c3), hn::Set(d, key1));
    c1 = b_low;
    c3 = a_low;
    key0 += kPhiloxWeylA;
    key1 += kPhiloxWeylB;
  }
  HWY_ALIGN std::uint32_t words[4 * HWY_LANES(std::uint32_t)];
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
  std::memcpy(bits, words, sizeof(words));
}

// Generates the mask of consecutive elements in runs that stay in the first-level cache.
class DropoutMask {
 public:
  static constexpr std::int64_t kRun = block_size(512, 32);  // elements

  explicit HWY_INLINE DropoutMask(const Dropout& dropout)
      : random_(dropout.random),
        largest_dropped_(static_cast<std::int32_t>(dropout.threshold()) - 1),
        scale_(dropout.scale()) {}

  // Makes ready elements [first, first + count) of the whole tensor; count at most kRun.
  HWY_INLINE void generate(std::int64_t first, std::int64_t count) {
    constexpr std::int64_t kBlocksAtOnce = HWY_LANES(std::uint32_t);
    const std::int64_t blocks = (first % 8 + count + 7) / 8;
    for (std::int64_t block = 0; block < blocks; block += kBlocksAtOnce) {
      philox_blocks(random_, static_cast<std::uint64_t>(first / 8 + block), bits_ + block * 8);
    }
    offset_ = first % 8;
  }

  // value * scale where kept, else 0, for the elements from first + index on.
  HWY_INLINE FloatVector apply(FloatVector value, std::int64_t index) const {
    const hn::RebindToSigned<FloatTag> integers;
    const hn::Rebind<std::uint16_t, FloatTag> halves;
    const auto bits = hn::PromoteTo(integers, hn::LoadU(halves, bits_ + offset_ + index));
    const auto kept = hn::RebindMask(FloatTag(), hn::Gt(bits, hn::Set(integers, largest_dropped_)));
    return hn::IfThenElseZero(kept, hn::Mul(value, hn::Set(FloatTag(), scale_)));
  }

  // In place, for elements [first, first + count) of an aligned row whose last vector is whole.
  HWY_INLINE void apply_to(float* values, std::int64_t first, std::int64_t count) {
    const FloatTag d;
    for (std::int64_t begin = 0; begin < count; begin += kRun) {
      const std::int64_t length = std::min(count - begin, kRun);
      generate(first + begin, length);
      for (std::int64_t i = 0; i < length; i += kFloatLanes) {
        hn::Store(apply(hn::Load(d, values + begin + i), i), d, values + begin + i);
      }
    }
  }

 private:
  RandomStream random_;
  std::int32_t largest_dropped_;
  float scale_;
  std::int64_t offset_ = 0;
  // The run, the elements before it in its first block, and those that the last group of blocks and a last vector reach
  // beyond it.
  HWY_ALIGN std::uint16_t bits_[kRun + 16 + 16 * HWY_LANES(std::uint32_t)];
};

// sum = residual + dropout(branch) for elements [first, first + count) of the whole tensor; without a residual (null)
// sum = dropout(branch).
template <class Sum, class Residual, class Branch>
HWY_INLINE void dropout_add(Sum* sum, const Residual* residual, const Branch* branch, DropoutMask& mask,
                            std::int64_t first, std::int64_t count) {
  for (std::int64_t begin = 0; begin < count; begin += DropoutMask::kRun) {
    const std::int64_t length = std::min(count - begin, DropoutMask::kRun);
    mask.generate(first + begin, length);
    for_each_vector(length, [&](std::int64_t i, auto access) HWY_ATTR {
      FloatVector value = mask.apply(access.load(branch + begin + i), i);
      if (residual != nullptr) value = hn::Add(access.load(residual + begin + i), value);
      access.store(value, sum + begin + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
