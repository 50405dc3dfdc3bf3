#include "tensor/weight_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/host/threads.h"
#include "base/round_up.h"

namespace teratron {
namespace {

F16 q8_step(float largest) {
  F16 step(largest / kMostSteps);
  if (static_cast<float>(step) * kMostSteps < largest) ++step.bits;  // the next above, exact in fp32 times 127
  return step;
}

// The whole number nearest to `steps`, clamped to `least` .. `most`; for a value that is not finite, one of the two.
// Adding 1.5 * 2^23 rounds away the fraction, which is faster than a call of the library.
float nearest(float steps, float least, float most) {
  constexpr float kWhole = 0x1.8p23F;
  const float above = steps > least ? steps : least, between = above < most ? above : most;
  return (between + kWhole) - kWhole;
}

// Whole numbers of 4 bits, not yet stored, and how well they represent the values.
struct Q4Trial {
  std::array<float, kTileColumns> steps;
  float products = 0, squares = 0;  // of the whole numbers with the values, and with themselves

  Q4Trial(std::span<const float, kTileColumns> values, float width) {
    const float inverse = 1 / width;
    for (std::size_t i = 0; i < values.size(); ++i) steps[i] = nearest(values[i] * inverse, -8, 7);
    for (std::size_t i = 0; i < values.size(); ++i) {
      products += steps[i] * values[i];
      squares += steps[i] * steps[i];
    }
  }
  // By how much the squared error is below that of zeros, where the step is `width`.
  float gain(float width) const { return width * (2 * products - width * squares); }
};

void put(Q8Tile& tile, std::int64_t row, const WeightBlock& block) {
  tile.steps[static_cast<std::size_t>(row)] = block.step.bits;
  for (std::size_t c = 0; c < block.values.size(); ++c) {
    tile.values[c / 4][static_cast<std::size_t>(row)][c % 4] = block.values[c];
  }
}

void put(Q4Tile& tile, std::int64_t row, const WeightBlock& block) {
  tile.steps[static_cast<std::size_t>(row)] = block.step.bits;
  constexpr std::size_t kHalf = kTileColumns / 2;
  for (std::size_t c = 0; c < kHalf; ++c) {
    const int low = block.values[c] + kQ4Zero, high = block.values[c + kHalf] + kQ4Zero;
    tile.values[c / 4][static_cast<std::size_t>(row)][c % 4] = static_cast<std::uint8_t>(low | high << 4);
  }
}

}  // namespace

Shape tiles_of(const Shape& matrix) {
  check(matrix.rank() == 2 && matrix[1] % kTileColumns == 0, "a matrix in tiles has whole blocks of columns");
  return {round_up(matrix[0], kTileRows) / kTileRows, matrix[1] / kTileColumns};
}

WeightBlock q8_block(std::span<const float, kTileColumns> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  WeightBlock block{.step = q8_step(largest), .values = {}};
  const float width = largest == 0 ? 1 : static_cast<float>(block.step);
  for (std::size_t i = 0; i < values.size(); ++i) {
    block.values[i] = static_cast<std::int8_t>(nearest(values[i] / width, -kMostSteps, kMostSteps));
  }
  return block;
}

WeightBlock q4_block(std::span<const float, kTileColumns> values) {
  float farthest = 0;
  for (const float value : values) {
    if (std::abs(value) > std::abs(farthest)) farthest = value;
  }
  WeightBlock block{.step = F16(0.0F), .values = {}};
  // The farthest value is -8 steps, or a little more or less.
  constexpr std::array kStepsOfFarthest = {-8.9F, -8.4F, -8.0F, -7.6F, -7.2F, -6.8F};
  float most = 0;
  for (const float steps : kStepsOfFarthest) {
    const Q4Trial first(values, farthest / steps);
    // The least squared error for these whole numbers, within fp16.
    const F16 step(std::clamp(first.products / first.squares, -kLargestF16, kLargestF16));
    if (step.bits == 0 || !std::isfinite(static_cast<float>(step))) continue;
    const Q4Trial fitted(values, step);
    const float gain = fitted.gain(step);
    if (!(gain > most)) continue;
    most = gain;
    block.step = step;
    std::ranges::transform(fitted.steps, block.values.begin(),
                           [](float whole) { return static_cast<std::int8_t>(whole); });
  }
  return block;
}

void encode_tiles(DType dtype, std::span<const float> rows, std::int64_t columns, std::span<std::byte> tiles) {
  visit_tiles(dtype, [&]<class Tile>(Tile) {
    const std::int64_t count = std::ssize(rows) / columns, across = columns / kTileColumns;
    check_equal(std::ssize(tiles), round_up(count, kTileRows) / kTileRows * across * std::int64_t{sizeof(Tile)},
                "bytes of tiles");
    parallel_for((count + kTileRows - 1) / kTileRows, 1, [&](std::int64_t tile_row, std::int64_t) {
      const std::int64_t first = tile_row * kTileRows;
      for (std::int64_t b = 0; b < across; ++b) {
        Tile tile{};
        for (std::int64_t r = 0; r < kTileRows; ++r) {
          std::array<float, kTileColumns> values{};
          if (first + r < count)
            std::copy_n(rows.data() + (first + r) * columns + b * kTileColumns, kTileColumns, values.begin());
          put(tile, r, dtype == DType::kQ8Tile ? q8_block(values) : q4_block(values));
        }
        std::memcpy(&tiles[static_cast<std::size_t>(tile_row * across + b) * sizeof(Tile)], &tile, sizeof(Tile));
      }
    });
  });
}

WholeNumbers whole_numbers_of(std::span<const float, kTileColumns> values) {
  WholeNumbers rounded;
  float largest = 0;
  bool is_finite = true;
  for (const float value : values) {
    largest = std::max(largest, std::abs(value));
    is_finite = is_finite && std::isfinite(value);
  }
  if (!is_finite) rounded.step = std::numeric_limits<float>::quiet_NaN();
  if (!is_finite || largest < kLeastMagnitude) return rounded;
  rounded.step = largest / kMostSteps;
  const float steps = kMostSteps / largest;
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded.values[i] = static_cast<std::int8_t>(std::nearbyint(values[i] * steps));
  }
  return rounded;
}

}  // namespace teratron
