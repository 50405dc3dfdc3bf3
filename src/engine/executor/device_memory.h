// Memory that a GPU gives a stage beside its arena.
#pragma once

#include "executor/stage/stage_plan.h"

namespace teratron {

struct DeviceMemory {
  std::int64_t scratch = 0;  // of operations, at most (gpu_scratch_bytes); taken with the arena
  std::int64_t graphs = 0;   // of captured passes: an estimate; taken in the second micro-batch or step

  std::int64_t bytes() const { return scratch + graphs; }
};

// `captures_graphs`: Backend::captures_graphs() of the back end that the stage runs on.
DeviceMemory device_memory_of(const StagePlan& plan, DType compute_dtype, bool captures_graphs);

}  // namespace teratron
