// The scaling study's rows against the paper's tables, and a measurement of a model of a few kilobytes.
#include "studies/scaling_study.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace teratron {
namespace {

// Megatron-LM Table 1, at its own size.
TEST(ScalingStudy, UndividedItsModelsAreThePapers) {
  const std::vector<ScalingRow> rows = scaling_rows({.head_size_divisor = 1,
                                                     .layers_divisor = 1,
                                                     .vocab_divisor = 1,
                                                     .sequence_divisor = 1,
                                                     .batch = 8,
                                                     .copies = 64});
  const double billions[] = {1.2, 2.5, 4.2, 8.3};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(static_cast<double>(rows[i].model.parameters()) / 1e9, billions[i], 0.06);
    EXPECT_EQ(rows[i].mesh.ranks(), 1 << i);
    EXPECT_EQ(rows[i + 4].mesh.ranks(), 64 << i);
    EXPECT_EQ(rows[i + 4].batch, 512);
  }
  EXPECT_EQ(rows.size(), 15U);
}

TEST(ScalingStudy, EveryRowIsALayoutThatItsModelCanHaveWithinTheRanks) {
  for (const std::int64_t most : {1, 2, 3, 4, 7, 8}) {
    for (const std::int64_t divisor : {1, 4, 12, 96}) {
      const std::vector<ScalingRow> rows =
          scaling_rows({.head_size_divisor = divisor, .layers_divisor = 72, .most_tensor_ranks = most});
      EXPECT_EQ(rows.front().mesh.ranks(), 1);
      for (const ScalingRow& row : rows) {
        EXPECT_TRUE(row.model.faults(row.mesh.tensor).empty()) << row.study << " " << row.paper_row;
        EXPECT_LE(row.mesh.tensor, most);
        EXPECT_EQ(row.batch % row.mesh.data, 0);
        EXPECT_GT(row.paper, 0);
      }
    }
  }
}

TEST(ScalingStudy, AMeasurementHasTheUpdatesTheFlopsAndThePlan) {
  const ScalingSizes sizes{.head_size_divisor = 12,
                           .layers_divisor = 72,
                           .vocab_divisor = 100,
                           .sequence_divisor = 64,
                           .batch = 2,
                           .most_tensor_ranks = 2};
  for (const ScalingRow& row : scaling_rows(sizes)) {
    const ScalingResult result = measure(row, sizes, 2, 1);
    EXPECT_EQ(result.seconds.size(), 2U);
    EXPECT_EQ(result.flops, static_cast<double>(row.batch * 16) * row.model.training_flops_per_token(16));
    EXPECT_GT(result.planned_bytes, 0);
    EXPECT_GT(result.measured_bytes, 0);
  }
}

}  // namespace
}  // namespace teratron
