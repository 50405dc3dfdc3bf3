// Activations that a schedule keeps alive at every stage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

// A slice's activations in one cell live from its forward until its weight gradient is made (in a whole backward or by
// itself), and so do its keys and values.
struct MemoryPeak {
  std::int64_t slices = 0;    // most slices of one cell alive at a moment
  std::int64_t deferred = 0;  // most of them that wait for their weight gradient alone: they keep output gradients too
  double micro_batches = 0;   // most alive, in units of one micro-batch's activations in the whole stage (A / p)
};

// By stage. `slice_tokens`: how long each slice is; empty: all alike.
std::vector<MemoryPeak> memory_peaks(const Schedule& schedule, std::span<const std::int64_t> slice_tokens = {});
// Peaks where micro-batches have different cuts; the unit is the first one's activations.
std::vector<MemoryPeak> memory_peaks(const Schedule& schedule, std::span<const MicroBatchCut> cuts);

}  // namespace teratron::pipeline
