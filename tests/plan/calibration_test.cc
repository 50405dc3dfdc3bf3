// The search for the cost model's constants, on steps whose times the model itself made.
#include "plan/costs/calibration.h"

#include <gtest/gtest.h>

#include "plan/costs/cost_constants.h"

namespace teratron::plan {
namespace {

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
  std::vector<CalibrationStep> steps = calibration_steps({.dtype = DType::kF32}, truth.devices);
  if (truth.devices > 1) {
    const std::vector<CalibrationStep> split = calibration_steps({.tensor = truth.devices, .dtype = DType::kF32}, 1);
    steps.insert(steps.end(), split.begin(), split.end());
  }
  for (CalibrationStep& step : steps) {
    for (std::size_t slice = 0; slice < step.slices.size(); ++slice) {
      step.passes.push_back(predicted(step, truth, slice));
    }
    step.after = step.settings.tensor == 1 ? predicted_after(step, truth) : 0;
  }
  return steps;
}

TEST(Calibration, FindsTheConstantsThatTheStepsWereMadeWith) {
  for (const std::int64_t devices : {1, 2}) {
    SCOPED_TRACE(devices);
    Cluster truth = machine(devices);
    truth.constants = {{"product_efficiency", 0.8, ""}, {"saturation", 20, ""},       {"memory_efficiency", 0.3, ""},
                       {"kernel_start", 8e-6, ""},      {"gradient_speed", 1.3, ""},  {"attention_efficiency", 0.4, ""},
                       {"update_bytes", 50, ""},        {"sum_interference", 0.7, ""}};
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

TEST(Calibration, ItsClusterHasNoFaultsAndKnownConstantsAlone) {
  const Cluster truth = machine(2);
  const Calibration found = calibrate(truth, made_steps(truth), 2);
  EXPECT_TRUE(found.cluster.faults().empty());
  EXPECT_EQ(constants_of(found.cluster).cores, 2);  // throws where one is unknown or out of its range
}

}  // namespace
}  // namespace teratron::plan
