// The constants of the cost model on the machine at hand: steps of small models are run as training runs them, and the
// constants are those with which the model's predictions of their passes are least off.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "comm/mesh.h"
#include "ops/backend.h"
#include "plan/costs/layer_costs.h"

namespace teratron::plan {

// A model on one stage, one micro-batch. The ranks of the mesh split it, or each has a copy.
struct CalibrationStep {
  ModelConfig model;
  std::int64_t sequences = 1;
  std::vector<std::int64_t> slices;  // tokens
  LayerSettings settings;
  std::int64_t copies = 1;        // of the model, which sum their gradients
  bool shards_optimizer = false;  // over the copies
  // Measured: milliseconds of whole passes, at their least.
  std::vector<pipeline::PassTimes> passes;  // [slice]
  // Medians: from the last pass to the end of the step, sums and update; and what all passes take with what lies
  // between them, in times of the sum of the above. 0: not measured.
  double after = 0, pace = 0;
};

// Models of different widths, lengths, vocabularies, slices.
std::vector<CalibrationStep> calibration_steps(const LayerSettings& settings, std::int64_t copies);

// Runs all of them in turns, `rounds` times after one that does not count. All ranks of the mesh call it.
void measure(std::vector<CalibrationStep>& steps, const std::shared_ptr<Mesh>& mesh, Backend& backend, int rounds,
             const std::function<void(int done, int rounds)>& progress = {});

// What the cost model says of a step's slice, at its best.
pipeline::PassTimes predicted(const CalibrationStep& step, const Cluster& cluster, std::size_t slice);
double predicted_after(const CalibrationStep& step, const Cluster& cluster);  // milliseconds; of unsplit models

struct Calibration {
  Cluster cluster;                         // with the constants, and the innermost link's latency where steps are split
  double mean_error = 0, worst_error = 0;  // of passes, relative
};

// Least squares of the logarithms of predicted over measured. `cluster` is what was measured otherwise; `cores` are the
// threads of each rank where it computes on a CPU, else 0.
Calibration calibrate(Cluster cluster, const std::vector<CalibrationStep>& steps, int cores);

}  // namespace teratron::plan
