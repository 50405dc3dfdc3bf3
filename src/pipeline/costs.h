// What the actions of a schedule take, in milliseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

struct PassTimes {
  double forward = 0;
  double backward = 0;  // whole
  double backward_input = 0, backward_weight = 0;

  double of(Pass pass) const;
  // A backward that its parts share out evenly, as they share the multiplications of linear layers.
  static PassTimes even_parts(double forward, double backward);
  PassTimes times(double factor) const;  // everything takes that much longer
};

struct Costs {
  std::vector<std::vector<PassTimes>> passes;  // [cell][slice]
  std::vector<double> transfers;               // [slice]: from the end of a pass until the next stage has its result

  double of(const Schedule& schedule, int stage, const Action& action) const;
};

// `forward` and `backward` of a whole micro-batch, shared out over slices by their length (no lengths: evenly).
std::vector<PassTimes> even_times(int slices, std::span<const std::int64_t> slice_tokens, double forward,
                                  double backward);

// Stages alike: `slices[s]` is what slice s takes in a whole stage, which its chunks share out evenly.
Costs sliced_costs(const Schedule& schedule, std::span<const PassTimes> slices, double transfer = 0);

// Stages and slices alike: `forward` and `backward` of a whole micro-batch in a whole stage.
Costs even_costs(const Schedule& schedule, double forward, double backward, double transfer = 0);

}  // namespace teratron::pipeline
