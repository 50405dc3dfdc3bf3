#include "ops/cpu/products/tile_values.h"

#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/products/tile_values.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <cstring>

#include "hwy/highway.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Whole numbers of a tile in the order of its rows.
struct WholeRows {
  HWY_ALIGN std::int8_t values[kTileRows][kTileColumns];
};

HWY_INLINE void take_rows(const Q8Tile& tile, WholeRows& to) {
  for (std::size_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 8
    for (std::size_t w = 0; w < kTileWords; ++w) std::memcpy(to.values[r] + 4 * w, tile.values[w][r].data(), 4);
  }
}
// Less 8 when they are widened.
HWY_INLINE void take_rows(const Q4Tile& tile, WholeRows& to) {
  constexpr std::uint32_t kLow = 0x0F0F0F0F;
  for (std::size_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (std::size_t w = 0; w < kTileWords / 2; ++w) {
      std::uint32_t both;
      std::memcpy(&both, tile.values[w][r].data(), 4);
      const std::uint32_t low = both & kLow, high = both >> 4 & kLow;
      std::memcpy(to.values[r] + 4 * w, &low, 4);
      std::memcpy(to.values[r] + kTileColumns / 2 + 4 * w, &high, 4);
    }
  }
}

template <class Tile, class T>
void widen(const void* first, std::int64_t count, void* rows, std::int64_t stride) {
  const hn::Rebind<std::int8_t, FloatTag> bytes;
  const hn::Rebind<std::int32_t, FloatTag> words;
  const auto zero = hn::Set(words, std::is_same_v<Tile, Q4Tile> ? kQ4Zero : 0);
  const auto* const tiles = static_cast<const Tile*>(first);
  for (std::int64_t t = 0; t < count; ++t) {
    WholeRows whole;
    take_rows(tiles[t], whole);
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      const FloatVector step = constant(f16_to_float(tiles[t].steps[static_cast<std::size_t>(r)]));
      T* const to = static_cast<T*>(rows) + r * stride + t * kTileColumns;
      for (std::int64_t c = 0; c < kTileColumns; c += kFloatLanes) {
        const auto wide = hn::Sub(hn::PromoteTo(words, hn::LoadU(bytes, whole.values[r] + c)), zero);
        narrow(hn::Mul(hn::ConvertTo(FloatTag(), wide), step), to + c);
      }
    }
  }
}

using WidenTiles = void (*)(const void* first, std::int64_t count, void* rows, std::int64_t stride);

WidenTiles widen_tiles_function(DType tiles, DType to) {
  return visit_tiles(tiles, [&]<class Tile>(Tile) {
    return choose_by_storage(to, []<class T>(ElementType<T>) -> WidenTiles { return &widen<Tile, T>; });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(widen_tiles_function);

}  // namespace

void widen_tiles(DType tiles, const void* first, std::int64_t count, DType to, void* rows, std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(widen_tiles_function)(tiles, to)(first, count, rows, stride);
}

}  // namespace teratron
#endif  // HWY_ONCE
