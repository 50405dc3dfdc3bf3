// Blocks hold values up to the limits of their types.
#include "tensor/weight_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace teratron::testing {
namespace {

// The largest error of the block's values, in steps.
double error_in_steps(const WeightBlock& block, std::span<const float, kTileColumns> values) {
  const double step = std::abs(float{block.step});
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::abs(block.values[i] * double{float{block.step}} - values[i]) / step);
  }
  return worst;
}

TEST(WeightTiles, BlocksHoldTheLargestValuesOfEitherSign) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    for (const DType dtype : {DType::kQ8Tile, DType::kQ4Tile}) {
      std::array<float, kTileColumns> values;
      const double least = trial % 2 == 0 ? 0.99 : 0;
      std::uniform_real_distribution<double> share(least, 1);
      for (float& value : values) {
        value = static_cast<float>((random() % 2 == 0 ? 1 : -1) * share(random) * largest_in(dtype));
      }
      values[random() % values.size()] = static_cast<float>(largest_in(dtype) * (random() % 2 == 0 ? 1 : -1));
      const WeightBlock block = dtype == DType::kQ8Tile ? q8_block(values) : q4_block(values);
      ASSERT_LE(std::abs(float{block.step}), kLargestF16);
      ASSERT_GT(std::abs(float{block.step}), kLargestF16 / 2);
      // One end of 4 bits is 8 steps from 0, the other 7.
      ASSERT_LE(error_in_steps(block, values), dtype == DType::kQ8Tile ? 0.5 : 1.5);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
