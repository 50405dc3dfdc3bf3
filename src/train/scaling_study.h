// The scaling studies of the Megatron-LM paper (sections 5.1 and appendix D: Tables 1, 7 and 8, Figure 5) with models
// small enough for one machine: what a training step of each model on each layout of thread ranks costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "model/config.h"

namespace teratron {

struct ScalingPoint {
  ModelConfig model;
  MeshShape mesh;
  std::int64_t batch = 8;    // of the whole step
  std::int64_t paper_x = 0;  // what the paper's figure stands for: GPUs, or heads
  double paper_y = 0;        // the paper's figure: scaling in percent, or speed-up
};

struct ScalingStudy {
  std::string title, x_label;
  bool is_speedup = false;  // against the first point; otherwise percent of the FLOP/s of one rank alone on one core
  std::vector<ScalingPoint> points;
};

struct ScalingSettings {
  std::int64_t tokens = 128;  // of a sequence
  std::int64_t steps = 3;     // measured, after one that is not
  std::int64_t cores = 1;     // to use, at most; ranks beyond them take turns
};

struct ScalingMeasurement {
  double seconds = 0;  // of a step, median
  double flops = 0;    // of a step
  std::int64_t cores = 1;
  std::int64_t planned_bytes = 0, peak_bytes = 0;  // a rank; the peak: by how much the process grew

  double flops_per_core() const { return flops / seconds / static_cast<double>(cores); }
};

// Weak scaling with tensor parallelism, the same with data parallelism on top, attention heads, strong scaling; layouts
// of at most `ranks` ranks.
std::vector<ScalingStudy> scaling_studies(std::int64_t ranks);

// One rank alone on one core with the first model of the weak scaling: what the others are measured against.
ScalingPoint scaling_baseline();

// Trains in a process of its own, so that its peak of memory is its own. Call before this process has started threads.
// EnvironmentError: no memory, or the process died.
ScalingMeasurement measure_scaling(const ScalingPoint& point, const ScalingSettings& settings);

}  // namespace teratron
