// Steps of small models, measured as training runs them. The cost model's constants are fitted to them
// (plan/costs/calibration.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/dtype.h"
#include "comm/communicator.h"
#include "model/config.h"
#include "ops/backend.h"
#include "pipeline/timing/costs.h"

namespace teratron {

// One micro-batch of a model on one stage. The ranks of the mesh split it, or each has a copy.
struct CalibrationStep {
  ModelConfig model;
  std::int64_t sequences = 1;
  std::vector<std::int64_t> slices;         // tokens
  std::int64_t tensor = 1;                  // ranks that split the model
  std::int64_t copies = 1;                  // of the model, which sum their gradients
  DType dtype = DType::kF32;                // of the back end's arithmetic
  bool shards_optimizer = false;            // over the copies
  std::vector<pipeline::PassTimes> passes;  // [slice]: the least measured milliseconds
  double after = 0;  // median milliseconds from the last pass to the end of the step: sums and update
  double pace = 0;   // median time of all passes and the gaps between them, over the sum of `passes`; 0: not measured
};

// Models of different widths, lengths, vocabularies and slices.
std::vector<CalibrationStep> calibration_steps(std::int64_t tensor, std::int64_t copies, DType dtype);

// Makes the progress of a group of steps, "small models, one on each rank", on the rank that shows it.
using ShowRounds = std::function<std::function<void(int done, int rounds)>(const char* models)>;

// Measures a model on each rank, the same with a sharded optimizer, and one on all ranks: the steps of each group in
// turns, `rounds` times after a warm-up. Every rank of `world` calls it.
std::vector<CalibrationStep> measured_steps(Communicator& world, Backend& backend, int rounds, const ShowRounds& show);

}  // namespace teratron
