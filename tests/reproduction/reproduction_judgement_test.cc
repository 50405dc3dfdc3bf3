#include "reproduction/judgement.h"

#include <gtest/gtest.h>

namespace teratron::testing {
namespace {

using namespace plan;

ReproducedCell some_cell(const char* unit, double published, double ours) {
  return {.table = "Figure", .name = "row", .unit = unit, .published = published, .ours = ours};
}

TEST(Judgement, ARatioNearOneIsJudgedByItsEffect) {
  // 12 % faster there, 1 % here: the ratios themselves are 9.8 % apart.
  EXPECT_FALSE(is_met(some_cell("x", 1.12, 1.01)));
  EXPECT_TRUE(is_met(some_cell("x", 1.12, 1.10)));
  EXPECT_FALSE(is_met(some_cell("x", 1.12, 1.16)));
  EXPECT_DOUBLE_EQ(*error_of(some_cell("x", 1.5, 1.25)), -0.5);
  // Slower than 1 is as far from it as faster.
  EXPECT_FALSE(is_met(some_cell("x", 0.8, 0.9)));
  EXPECT_TRUE(is_met(some_cell("x", 0.8, 0.84)));
  EXPECT_DOUBLE_EQ(*error_of(some_cell("x", 0.8, 0.9)), -0.5);
}

TEST(Judgement, ARatioOfOneHasTheFloorAndNoRelativeError) {
  EXPECT_TRUE(is_met(some_cell("x", 1, 1.02)));
  EXPECT_FALSE(is_met(some_cell("x", 1, 0.96)));
  EXPECT_EQ(error_of(some_cell("x", 1, 0.7)), std::nullopt);
}

TEST(Judgement, ALargeRatioMayBeOffNoMoreThanATime) {
  for (const double published : {1.7, 2.4, 5.0, 7.83}) {
    EXPECT_DOUBLE_EQ(tolerance_of(some_cell("x", published, 1)), 0.1 * published);
  }
  EXPECT_FALSE(is_met(some_cell("x", 7.83, 8.77)));
}

TEST(Judgement, OtherUnitsHaveBoundsOfTheirOwn) {
  EXPECT_TRUE(is_met(some_cell("s", 10, 10.9)));
  EXPECT_FALSE(is_met(some_cell("s", 10, 11.1)));
  EXPECT_FALSE(is_met(some_cell("days", 2.27, 1.91)));
  EXPECT_DOUBLE_EQ(*error_of(some_cell("TFLOP/s", 40, 30)), -0.25);
  EXPECT_TRUE(is_met(some_cell("%", 77, 79.9)));
  EXPECT_FALSE(is_met(some_cell("%", 20, 23.1)));
  EXPECT_DOUBLE_EQ(*error_of(some_cell("%", 20, 23)), 3);
  EXPECT_TRUE(is_met(some_cell("slices", 16, 17)));
  EXPECT_FALSE(is_met(some_cell("slices", 3, 4)));
  EXPECT_FALSE(is_met(some_cell("GiB", 28, 21.8)));
  EXPECT_EQ(kind_of(some_cell("GiB", 28, 21.8)), CellKind::kMemory);
  EXPECT_EQ(kind_of(some_cell("runs", 11, 10)), CellKind::kCount);
}

TEST(Judgement, ScoresLeaveOutWhatIsNotCountedAndSayWhatIsPredicted) {
  std::vector<ReproducedCell> cells = {some_cell("s", 10, 10.5), some_cell("s", 10, 12), some_cell("s", 10, 30),
                                       some_cell("x", 1, 1.5), some_cell("%", 100, 100)};
  cells[0].is_fitted = true;
  cells[2].uncounted = "derived";
  cells[4].uncounted = "by definition";
  const std::vector<Score> all = scores_of(cells, Counted::kAll);
  ASSERT_EQ(all.size(), 2U);  // no percentage is counted
  EXPECT_EQ(all[0].kind, CellKind::kAmount);
  EXPECT_EQ(all[0].cells, 2);
  EXPECT_EQ(all[0].met, 1);
  EXPECT_DOUBLE_EQ(*all[0].mean_error, 0.125);
  EXPECT_DOUBLE_EQ(*all[0].worst_error, 0.2);
  EXPECT_EQ(all[1].met, 0);
  EXPECT_EQ(all[1].mean_error, std::nullopt);
  const std::vector<Score> predictions = scores_of(cells, Counted::kPredictions);
  EXPECT_EQ(predictions[0].cells, 1);
  EXPECT_DOUBLE_EQ(*predictions[0].mean_error, 0.2);
}

}  // namespace
}  // namespace teratron::testing
