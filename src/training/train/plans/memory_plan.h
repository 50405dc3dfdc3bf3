// What a training run takes of memory, from its configuration alone, and what makes it fit where that is too much.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/options.h"
#include "runtime/memory_table.h"
#include "train/plans/pipeline_plan.h"

namespace teratron {

// What the executors of this configuration are made for, on every rank. `pipeline` is plan_pipeline()'s.
ExecutorOptions training_options(const TrainConfig& config, const PipelinePlan& pipeline);

// What plans depend on beside the configuration.
struct MemoryPlanContext {
  std::int64_t vocab_size = 0;
  DType compute_dtype = DType::kF32;
  slicing::Profiles profiles = {};  // for --token-slices auto and joint
  int threads = 0;                  // of a rank that computes on a CPU; 0: it does not
};

// Bytes of a rank of each pipeline stage, in any layout, without starting one: the arena, and on a CPU what its threads
// take to compute. Where --logits-chunk is left to the
// memory of a device: with the fewest rows.
std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context);
// Of these stages alone.
std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context,
                                         std::span<const int> stages);

}  // namespace teratron
