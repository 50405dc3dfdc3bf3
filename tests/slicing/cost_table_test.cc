#include "slicing/cost/cost_table.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace teratron::testing {
namespace {

using namespace slicing;

TEST(SliceGrid, IsOfUnitsAndNoFinerThanAskedAndOfBlocksWhereTheSequenceHasSixteen) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 1000; ++trial) {
    const std::int64_t unit = 1 + static_cast<std::int64_t>(random.below(9));
    const std::int64_t tokens = unit * (1 + static_cast<std::int64_t>(random.below(4000)));
    const std::int64_t steps = 1 + static_cast<std::int64_t>(random.below(300));
    const std::int64_t grid = slice_grid(tokens, unit, steps);
    EXPECT_EQ(grid % unit, 0) << tokens << " " << unit << " " << steps;
    EXPECT_GE(grid * steps, tokens) << unit << " " << steps;
    if (tokens >= 16 * 16 * unit) {
      EXPECT_EQ(grid % 16, 0) << tokens << " " << unit << " " << steps;
    }
    if (tokens < 256 && steps >= tokens) {
      EXPECT_EQ(grid, unit) << tokens;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
