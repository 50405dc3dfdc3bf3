// Norms and extremes of a whole model's layers in one update, over all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/executor.h"

namespace teratron {

struct LayerNumerics {
  struct Values {
    double rms = 0;
    double largest = 0;  // magnitude; infinite where a value is not finite
  };
  std::int64_t layer = 0;  // -1: the embedding; its weights are all that no layer has
  Values output;           // the residual stream after it
  Values gradient;         // of the loss by that output
  Values weights;          // before the update
};

// Numerics of the last step of all ranks, which all call it; the embedding first. `entries`: this rank's.
// `has_samples`: its copy of the model had some. Equal for all layouts but for the order of sums and, where samples are
// padded, the padding.
std::vector<LayerNumerics> layer_numerics(Executor& executor, std::span<const StepTallies::Entry> entries,
                                          bool has_samples, double loss_scale);

}  // namespace teratron
