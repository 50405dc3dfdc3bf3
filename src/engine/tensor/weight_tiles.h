// Weights in blocks of 32 values of a row: a step in fp16 and 32 whole numbers, of 8 bits (GGUF's Q8_0) or of 4 (Q4_0).
// A weight is its whole number times its block's step.
//
// In memory the blocks of 16 rows lie side by side in a tile, four columns of a row after those of the row before, so
// that a vector of 16 words meets one word of an input in every lane and the sums of 16 outputs need no adding up
// across lanes. A matrix [rows, columns] is a view [ceil(rows / 16), columns / 32] of tiles; rows beyond the last are
// 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/float_types.h"
#include "tensor/tensor.h"

namespace teratron {

constexpr std::int64_t kTileRows = 16, kTileColumns = 32;
constexpr std::int64_t kTileWords = kTileColumns / 4;  // of a row

// Value (r, c) is values[c / 4][r][c % 4].
struct Q8Tile {
  std::array<std::uint16_t, kTileRows> steps;  // fp16
  std::array<std::array<std::array<std::int8_t, 4>, kTileRows>, kTileWords> values;
};
// Value (r, c), c < 16, is the low half of values[c / 4][r][c % 4] less 8; (r, c + 16) is the high half less 8.
struct Q4Tile {
  std::array<std::uint16_t, kTileRows> steps;
  std::array<std::array<std::array<std::uint8_t, 4>, kTileRows>, kTileWords / 2> values;
};
static_assert(sizeof(Q8Tile) == size_of(DType::kQ8Tile) && sizeof(Q4Tile) == size_of(DType::kQ4Tile));

constexpr int kQ4Zero = 8;  // the half byte that stands for 0
constexpr float kMostSteps = 127, kLargestF16 = 65504;

// The largest magnitude that blocks of a type hold: so many of fp16's largest steps.
constexpr double largest_in(DType tiles) {
  return double{kLargestF16} * (tiles == DType::kQ8Tile ? kMostSteps : kQ4Zero);
}

inline int whole_number_in(const Q8Tile& tile, std::int64_t row, std::int64_t column) {
  const auto r = static_cast<std::size_t>(row), c = static_cast<std::size_t>(column);
  return tile.values[c / 4][r][c % 4];
}
inline int whole_number_in(const Q4Tile& tile, std::int64_t row, std::int64_t column) {
  const auto r = static_cast<std::size_t>(row), c = static_cast<std::size_t>(column);
  const int both = tile.values[c % 16 / 4][r][c % 4];
  return (c < 16 ? both & 15 : both >> 4) - kQ4Zero;
}
template <class Tile>
float value_in(const Tile& tile, std::int64_t row, std::int64_t column) {
  return static_cast<float>(whole_number_in(tile, row, column)) *
         f16_to_float(tile.steps[static_cast<std::size_t>(row)]);
}

// Calls use(Q8Tile()) or use(Q4Tile()).
template <class Use>
auto visit_tiles(DType dtype, const Use& use) {
  check(is_tiles(dtype), "a view of tiles");
  return dtype == DType::kQ8Tile ? use(Q8Tile()) : use(Q4Tile());
}

// The view's shape of a matrix [rows, columns]; columns are whole tiles.
Shape tiles_of(const Shape& matrix);

// A block's step and whole numbers. Values are finite, and no larger than largest_in().
struct WeightBlock {
  F16 step;
  std::array<std::int8_t, kTileColumns> values;
};
// -127 to 127, each the nearest to its value. The step is the smallest in fp16 whose 127-fold reaches the largest of
// the values, so each is within half a step.
WeightBlock q8_block(std::span<const float, kTileColumns> values);
// -8 to 7. The value farthest from 0 is near 8 steps; of the steps around that, the one of the least squared error.
WeightBlock q4_block(std::span<const float, kTileColumns> values);

// Writes rows of a matrix, whole tiles, as tiles one after the other. Rows beyond the last are 0.
void encode_tiles(DType dtype, std::span<const float> rows, std::int64_t columns, std::span<std::byte> tiles);

// An input's block, rounded for products with weights in tiles: whole numbers from -127 to 127 of a step, which is the
// largest magnitude / 127. All arithmetic is of fp32, each operation rounded once. Where the largest magnitude is below
// 2^-100 all are 0; where a value is not finite, the step is NaN and the others are 0.
struct WholeNumbers {
  float step = 0;
  std::array<std::int8_t, kTileColumns> values = {};
};
constexpr float kLeastMagnitude = 0x1p-100F;
WholeNumbers whole_numbers_of(std::span<const float, kTileColumns> values);

}  // namespace teratron
