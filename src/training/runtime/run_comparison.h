// Comparison of two runs by their logs and checkpoints, or of two models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "checkpoint/tensor_differences.h"
#include "telemetry/metrics_comparison.h"

namespace teratron {

// First difference of two runs: in an update of the log, and in a checkpoint of an iteration that both have.
struct RunComparison {
  std::optional<MetricsComparison> log;
  std::vector<std::int64_t> equal_checkpoints;  // iterations
  std::optional<std::int64_t> checkpoint;       // iteration of the checkpoints in `tensors`
  std::optional<TensorComparison> tensors;      // of the first checkpoint that differs, or of the last
  bool equal() const { return !(log && log->first_difference) && (!tensors || tensors->equal()); }
};

// Compares two folders of runs, or else what open_tensors_of() opens. Numbers of the log are equal within the share
// `tolerance` of the larger; tensors by the rule of compare(). UserError: nothing is at `a` or `b`, it holds no tensors
// or is damaged, or runs have no update and no checkpoint in common.
RunComparison compare_runs(const std::filesystem::path& a, const std::filesystem::path& b, double tolerance);

}  // namespace teratron
