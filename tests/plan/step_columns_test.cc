// A step's timeline in columns: what stages do at a column's time, and windows where columns would hide passes.
#include "plan/step_columns.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cluster/cluster_file.h"
#include "plan/costs/step_time.h"

namespace teratron::testing {
namespace {

using namespace plan;

using pipeline::Pass;

TEST(StepColumns, ALetterSaysWhatTheStageDoesInTheMiddleOfTheColumn) {
  simulation::PipelineResult result{.seconds = 4, .pipeline_seconds = 3};
  result.timeline.actions = {{{{.pass = Pass::kForward}, 0, 500}, {{.pass = Pass::kBackward}, 2000, 3000}},
                             {{{.pass = Pass::kForward, .micro_batch = 1}, 500, 1000},
                              {{.pass = Pass::kBackwardInput, .micro_batch = 1}, 1000, 2000},
                              {{.pass = Pass::kBackwardWeight, .micro_batch = 1}, 2000, 2500}}};
  const StepColumns drawn = columns_of(result, 16);
  ASSERT_EQ(drawn.windows.size(), 1U);
  EXPECT_EQ(drawn.windows[0].end, 4);
  EXPECT_EQ(drawn.stages, (std::vector<int>{0, 1}));
  EXPECT_EQ(drawn.rows, (std::vector<std::string>{"FF------BBBBSSSS", "--ffbbbbww--SSSS"}));
}

simulation::PipelineResult step_of(std::int64_t stages, std::int64_t micro_batches) {
  TrainConfig config;
  config.model.config.num_layers = stages;
  config.model.config.hidden_size = 256;
  config.model.config.num_attention_heads = 4;
  config.model.config.vocab_size = 1024;
  config.model.seq_length = 128;
  config.batch.global_batch_size = micro_batches;
  config.layout.pipeline_parallel = stages;
  config.backend.bf16 = true;
  const Cluster cluster = find_cluster("dgx-a100", stages);
  return simulation::simulate(work_of(config, cluster, 0), cluster);
}

// Each column is of the same time, so the share of dashes is the bubbles'.
TEST(StepColumns, AsManyAreEmptyAsStagesWait) {
  const simulation::PipelineResult result = step_of(4, 8);
  const StepColumns drawn = columns_of(result, 4000);
  ASSERT_EQ(drawn.windows.size(), 1U);
  double waiting = 0, after = 0;
  for (const std::string& row : drawn.rows) {
    ASSERT_EQ(row.size(), 4000U);
    waiting += static_cast<double>(std::ranges::count(row, '-'));
    after += static_cast<double>(std::ranges::count(row, 'S'));
  }
  const double all = 4 * 4000;
  EXPECT_NEAR(waiting / (all - after), result.bubble_share(), 0.01);  // of some 70 passes, each half a column off
  EXPECT_NEAR(after / all, 1 - result.pipeline_seconds / result.seconds, 1e-3);
}

TEST(StepColumns, ManyMicroBatchesHaveTheirBeginningAndTheirEndDrawn) {
  const simulation::PipelineResult result = step_of(8, 256);
  const StepColumns drawn = columns_of(result);
  ASSERT_EQ(drawn.windows.size(), 2U);
  EXPECT_EQ(drawn.windows[0].begin, 0);
  EXPECT_EQ(drawn.windows[1].end, result.seconds);
  EXPECT_LT(drawn.windows[0].end, drawn.windows[1].begin);
  for (const std::string& row : drawn.rows) EXPECT_EQ(row.size(), 160U);
  EXPECT_EQ(drawn.rows[0][0], 'F');
  EXPECT_LT(drawn.rows[0].find_first_of("Bb"), 80U) << "the first window has the first backward";
  EXPECT_NE(drawn.rows[7].substr(0, 80).find_first_of("Ff"), std::string::npos) << "the last stage has begun";
  EXPECT_NE(drawn.rows[0].find("Ff"), std::string::npos) << "micro-batches have different letters";
}

TEST(StepColumns, OfManyStagesSomeAreDrawnTheFirstAndTheLastAmongThem) {
  const StepColumns drawn = columns_of(step_of(40, 40));
  ASSERT_EQ(drawn.rows.size(), 16U);
  EXPECT_EQ(drawn.stages.front(), 0);
  EXPECT_EQ(drawn.stages.back(), 39);
  for (std::size_t i = 1; i < 16; ++i) EXPECT_GT(drawn.stages[i], drawn.stages[i - 1]);
}

}  // namespace
}  // namespace teratron::testing
