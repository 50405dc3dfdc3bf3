// Constants of the cost model for the machine at hand: those with which its predictions of measured steps of small
// models are least off.
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "pipeline/timing/costs.h"
#include "profile/calibration_steps.h"

namespace teratron::plan {

// Predicted milliseconds of a step's slices at their best, and of what follows the passes of an unsplit model.
std::vector<pipeline::PassTimes> predicted(const CalibrationStep& step, const Cluster& cluster);
double predicted_after(const CalibrationStep& step, const Cluster& cluster);

struct Calibration {
  Cluster cluster;                         // with the constants, and the innermost link's latency where steps are split
  double mean_error = 0, worst_error = 0;  // of passes, relative
};

// Least squares of the logarithms of predicted over measured, passes at their least times; `pace` is how much longer
// usual steps take. Weight traffic that no arithmetic hides (`weight_passes`) shows in steps of few rows alone. The
// time after the passes is fitted with the optimizer's state whole and shared out: the update and the sums before it
// both grow with the parameters, so steps of one kind do not separate them. `cluster`: all that was measured otherwise.
// `cores`: threads of each rank that computes on a CPU, else 0.
Calibration calibrate(Cluster cluster, const std::vector<CalibrationStep>& measured, int cores);

}  // namespace teratron::plan
