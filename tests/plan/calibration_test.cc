// The search for the cost model's constants, on steps whose times the model itself made.
#include "plan/costs/calibration.h"

#include <gtest/gtest.h>

#include "plan/costs/cost_constants.h"
#include "plan/costs/step_time.h"

namespace teratron::testing {
namespace {

using namespace plan;

Cluster machine(std::int64_t devices) {
  Cluster cluster;
  cluster.name = "test";
  cluster.devices = devices;
  cluster.device = {.name = "core", .memory = 1e10, .peak_16 = 1e11, .peak_32 = 1e11, .memory_bandwidth = 1e11};
  if (devices > 1) {
    cluster.links = {{.name = "memory", .devices = devices, .bandwidth = 1e10, .latency = 1e-5, .from = ""}};
  }
  return cluster;
}

// As if `truth` had been measured.
std::vector<CalibrationStep> made_steps(const Cluster& truth) {
  std::vector<CalibrationStep> steps = calibration_steps(1, truth.devices, DType::kF32);
  if (truth.devices > 1) {
    const std::vector<CalibrationStep> split = calibration_steps(truth.devices, 1, DType::kF32);
    steps.insert(steps.end(), split.begin(), split.end());
    std::vector<CalibrationStep> sharded = calibration_steps(1, truth.devices, DType::kF32);
    for (CalibrationStep& step : sharded) step.shards_optimizer = true;
    steps.insert(steps.end(), sharded.begin(), sharded.end());
  }
  for (CalibrationStep& step : steps) {
    step.passes = predicted(step, truth);
    step.after = step.tensor == 1 ? predicted_after(step, truth) : 0;
  }
  return steps;
}

TEST(Calibration, FindsTheConstantsThatTheStepsWereMadeWith) {
  for (const std::int64_t devices : {1, 2}) {
    SCOPED_TRACE(devices);
    Cluster truth = machine(devices);
    truth.constants = {{"product_efficiency", 0.8, ""}, {"saturation", 20, ""},
                       {"memory_efficiency", 0.3, ""},  {"kernel_start", 8e-6, ""},
                       {"gradient_speed", 1.3, ""},     {"attention_efficiency", 0.4, ""},
                       {"update_bytes", 50, ""},        {"sum_interference", 0.7, ""},
                       {"weight_passes", 4, ""},        {"loss_passes", 3, ""}};
    if (devices > 1) truth.links.front().latency = 3e-5;
    const Calibration found = calibrate(machine(devices), made_steps(truth), 1);
    // The search ends at factors of 1.002; several constants that are that far off may add up.
    EXPECT_LT(found.mean_error, 0.01);
    EXPECT_LT(found.worst_error, 0.03);
    const CostConstants ours = constants_of(found.cluster), theirs = constants_of(truth);
    EXPECT_NEAR(ours.kernel_start / theirs.kernel_start, 1, 0.2);  // small products tell it and saturation hardly apart
    EXPECT_NEAR(ours.gradient_speed / theirs.gradient_speed, 1, 0.1);
    EXPECT_NEAR(ours.attention_efficiency / theirs.attention_efficiency, 1, 0.1);
    if (devices > 1) {
      EXPECT_NEAR(found.cluster.links.front().latency / 3e-5, 1, 0.1);
    }
  }
}

// Two copies: a sum and an update alone cannot be told apart, since both grow with the parameters.
TEST(Calibration, PredictsBothKindsOfOptimizer) {
  Cluster truth = machine(2);
  truth.constants = {{"update_bytes", 50, ""}, {"sum_interference", 0.7, ""}, {"gather_slowdown", 5, ""}};
  const std::vector<CalibrationStep> steps = made_steps(truth);
  const Calibration found = calibrate(machine(2), steps, 1);
  for (const CalibrationStep& step : steps) {
    if (step.tensor > 1) continue;
    EXPECT_NEAR(predicted_after(step, found.cluster) / step.after, 1, 0.05) << step.shards_optimizer;
  }
  // What a plan says of an update is the same.
  TrainConfig config;
  config.data_path = {"corpus"};
  config.model.config = steps.front().model;
  config.model.seq_length = config.model.config.max_position_embeddings;
  config.layout.data_parallel = 2;
  config.batch.global_batch_size = 2;
  config.batch.micro_batch_size = 1;
  const auto plan_of = [&](const Cluster& cluster) { return predict_step(config, cluster, 512).seconds; };
  for (const bool shards : {false, true}) {
    config.layout.distributed_optimizer = shards;
    EXPECT_NEAR(plan_of(found.cluster) / plan_of(truth), 1, 0.03);
  }
  Cluster slower = truth;
  slower.constants.back().value = 50;
  EXPECT_GT(plan_of(slower), plan_of(truth));
}

TEST(Calibration, UsualStepsAreSlowerThanTheBestByThePace) {
  const Cluster truth = machine(1);
  std::vector<CalibrationStep> steps = made_steps(truth);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].pace = 1.1 + 0.02 * static_cast<double>(i % 3);
  const Calibration found = calibrate(truth, steps, 1);
  EXPECT_DOUBLE_EQ(constants_of(found.cluster).pace, 1.12);
  EXPECT_LT(found.mean_error, 0.01);  // of passes at their best
  Cluster at_best = found.cluster;
  std::erase_if(at_best.constants, [](const Constant& constant) { return constant.name == "pace"; });
  const Slice slice{.sequences = 2, .tokens = 64};
  const ModelCosts usual(steps.front().model, {}, found.cluster), best(steps.front().model, {}, at_best);
  EXPECT_NEAR(usual.layer(slice).forward, 1.12 * best.layer(slice).forward, 1e-9);
  EXPECT_NEAR(usual.head(slice).backward, 1.12 * best.head(slice).backward, 1e-9);
  EXPECT_NEAR(usual.embedding(slice).forward, 1.12 * best.embedding(slice).forward, 1e-9);
}

TEST(Calibration, ItsClusterHasNoFaultsAndKnownConstantsAlone) {
  const Cluster truth = machine(2);
  const Calibration found = calibrate(truth, made_steps(truth), 2);
  EXPECT_TRUE(found.cluster.faults().empty());
  EXPECT_EQ(constants_of(found.cluster).cores, 2);  // throws where one is unknown or out of its range
}

}  // namespace
}  // namespace teratron::testing
