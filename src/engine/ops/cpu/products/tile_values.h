// Values of weights in tiles (tensor/weight_tiles.h), for products that pack them like any other weight: a part of a
// panel at a time is widened into memory that stays in the first-level cache, and packed from there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/float_types.h"
#include "ops/cpu/products/gemm.h"
#include "tensor/weight_tiles.h"

namespace teratron {

// Writes the values of `count` tiles, neighbours in a row of tiles, rounded once to `to`: 16 rows of 32 * count values,
// `stride` values apart.
void widen_tiles(DType tiles, const void* first, std::int64_t count, DType to, void* rows, std::int64_t stride);

// Depths [depth, depth + depths) of a DepthBlock and columns [column, column + columns) of b, within one panel. Rows of
// the weight, which are columns of a transposed b, are `stride` values apart.
template <class T>
struct WidenedPart {
  const T* values;
  std::int64_t stride, depth, depths, column, columns;
};

// Calls use(WidenedPart) for the parts of some columns of a b in tiles, panel by panel; a part's depths lie in one
// tile.
template <class T, class Use>
void for_each_widened_part(const GemmOperand& b, const DepthBlock& depths, GemmRange columns,
                           std::int64_t panel_columns, const Use& use) {
  constexpr std::int64_t kMostPanel = 32, kStride = kMostPanel + kTileColumns, kRows = kMostPanel + kTileRows;
  check(panel_columns <= kMostPanel, "a panel of widened tiles has 32 columns at most");
  constexpr DType kType = std::is_same_v<T, float> ? DType::kF32 : std::is_same_v<T, Bf16> ? DType::kBF16 : DType::kF16;
  alignas(64) T values[kRows * kStride];
  const std::int64_t tile_bytes = size_of(*b.tiles), across = b.stride / kTileColumns;
  const std::int64_t step = b.transposed ? kTileColumns : kTileRows, last = depths.begin + depths.count;
  for (std::int64_t j = columns.begin; j < columns.end; j += panel_columns) {
    const std::int64_t count = std::min(panel_columns, columns.end - j);
    for (std::int64_t p = depths.begin, next = 0; p < last; p = next) {
      next = std::min(last, p / step * step + step);
      const GemmRange of_p{p, next}, of_j{j, j + count};
      const GemmRange rows = b.transposed ? of_j : of_p, inputs = b.transposed ? of_p : of_j;
      const std::int64_t first_row = rows.begin / kTileRows, first_tile = inputs.begin / kTileColumns;
      const std::int64_t tiles = (inputs.end + kTileColumns - 1) / kTileColumns - first_tile;
      for (std::int64_t row = first_row; row * kTileRows < rows.end; ++row) {
        widen_tiles(*b.tiles, static_cast<const std::byte*>(b.data) + (row * across + first_tile) * tile_bytes, tiles,
                    kType, values + (row - first_row) * kTileRows * kStride, kStride);
      }
      use(WidenedPart<T>{values + rows.begin % kTileRows * kStride + inputs.begin % kTileColumns, kStride,
                         p - depths.begin, next - p, j, count});
    }
  }
}

}  // namespace teratron
