#include "plan/training_cost.h"

#include <gtest/gtest.h>

#include "cluster/cluster_file.h"

namespace teratron::testing {
namespace {

using namespace plan;

// 16 devices that train 1000 tokens a second, 8 sequences of 100 tokens an update.
PlannedLayout planned() {
  PlannedLayout layout;
  layout.config.model.seq_length = 100;
  layout.config.batch.global_batch_size = 8;
  layout.time.tokens_per_second = 1000;
  return layout;
}

PlanRequest request_of(const PlannedLayout& layout) {
  return {.config = layout.config, .cluster = find_cluster("dgx-a100", 16), .vocab_size = 1000};
}

ModelConfig model_of(const PlannedLayout& layout) {
  ModelConfig model = layout.config.model.model_for(0);
  model.vocab_size = 1000;
  return model;
}

TEST(TrainingCost, ATrainingTakesItsTokensAtTheStepsSpeed) {
  const PlannedLayout layout = planned();
  const Training training = training_of(86'400'001, request_of(layout), layout);
  EXPECT_NEAR(training.days, 1, 1e-6);
  EXPECT_EQ(training.updates, 108'001);  // of 800 tokens; the last one is of one token
  EXPECT_DOUBLE_EQ(training.tokens, 86'400'001);
  EXPECT_DOUBLE_EQ(training.operations, 86'400'001 * model_of(layout).training_flops_per_token(100));
  EXPECT_EQ(training_of(800, request_of(layout), layout).updates, 1);
  EXPECT_EQ(training_of(0, request_of(layout), layout).updates, 1) << "no training has none";
  EXPECT_DOUBLE_EQ(tokens_in(2, layout), 172'800'000);
}

TEST(TrainingCost, ABudgetLastsForTheDaysThatItsBillIsOf) {
  const Cluster cluster = find_cluster("dgx-a100", 16);
  const Bill bill = bill_of(10, 2.5, cluster);
  EXPECT_DOUBLE_EQ(bill.device_hours, 3840);
  EXPECT_DOUBLE_EQ(bill.dollars, 9600);
  EXPECT_DOUBLE_EQ(bill.megawatt_hours, 3840 * 400 / 1e6);  // an A100 has 400 W
  EXPECT_DOUBLE_EQ(days_of_budget(bill.dollars, 2.5, cluster), 10);
}

TEST(TrainingCost, WithoutTokensTrainingIsComputeOptimal) {
  const PlannedLayout layout = planned();
  EXPECT_DOUBLE_EQ(optimal_tokens(request_of(layout)), 20 * static_cast<double>(model_of(layout).parameters()));
}

}  // namespace
}  // namespace teratron::testing
