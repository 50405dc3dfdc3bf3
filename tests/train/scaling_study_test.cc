// The scaling study's layouts, and one of its measurements on a model of a few kilobytes.
#include "train/scaling_study.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "model/gpt2.h"

namespace teratron {
namespace {

TEST(ScalingStudy, EveryPointIsALayoutThatItsModelCanHaveWithinTheRanks) {
  for (const std::int64_t ranks : {1, 2, 3, 4, 7, 8, 16}) {
    std::uint64_t most = 0;
    for (const ScalingStudy& study : scaling_studies(ranks)) {
      for (const ScalingPoint& point : study.points) {
        EXPECT_TRUE(point.model.faults(point.mesh.tensor).empty()) << study.title;
        EXPECT_EQ(point.batch % point.mesh.data, 0);
        EXPECT_GT(point.paper_y, 0);
        most = std::max(most, static_cast<std::uint64_t>(point.mesh.ranks()));
      }
    }
    EXPECT_EQ(most, std::bit_floor(static_cast<std::uint64_t>(ranks)));
  }
}

TEST(ScalingStudy, AMeasurementHasTheStepsFlopsAndTheRunnersPlan) {
  ScalingPoint point = scaling_baseline();
  point.model.num_layers = 1;
  point.model.hidden_size = 32;
  point.model.vocab_size = 64;
  point.mesh.tensor = 2;
  const ScalingMeasurement measured = measure_scaling(point, {.tokens = 16, .steps = 2, .cores = 1});
  EXPECT_GT(measured.seconds, 0);
  EXPECT_EQ(measured.flops, 8 * 16 * point.model.training_flops_per_token(16));
  EXPECT_EQ(measured.cores, 1);
  EXPECT_GT(measured.planned_bytes, 0);
}

}  // namespace
}  // namespace teratron
