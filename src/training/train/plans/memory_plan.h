// Memory of a training run, from its configuration alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/options.h"
#include "runtime/memory_table.h"
#include "train/config/config.h"
#include "train/plans/pipeline_plan.h"

namespace teratron {

// Options of the executors of this configuration, on every rank. `pipeline` is plan_pipeline()'s.
ExecutorOptions training_options(const TrainConfig& config, const PipelinePlan& pipeline);

// Inputs of a plan beside the configuration.
struct MemoryPlanContext {
  std::int64_t vocab_size = 0;
  DType compute_dtype = DType::kF32;
  const slicing::Profile* profile = nullptr;  // for --token-slices auto
  int threads = 0;                            // of a rank that computes on a CPU; 0: on another device
  bool on_gpu = false;                        // counts what a CUDA back end's operations take beside the arena
  bool captures_graphs = false;               // and its graphs, without which passes run, too
};

// Plans of the stages of one configuration, whose pipeline is planned once.
class StageMemoryPlans {
 public:
  // Refers to both.
  StageMemoryPlans(const TrainConfig& config, const MemoryPlanContext& context);

  // Bytes of a rank of the stage, as planned_memory() counts them.
  std::int64_t bytes(int stage) const { return bytes(stage, options_.recompute); }
  // `recompute`: in place of the configuration's.
  std::int64_t bytes(int stage, const Recomputation& recompute) const { return planned(stage, recompute).needed(); }
  // These bytes by kind.
  RankMemory by_kind(int stage) const { return planned(stage, options_.recompute, true); }

 private:
  RankMemory planned(int stage, const Recomputation& recompute, bool has_kinds = false) const;

  const TrainConfig& config_;
  const MemoryPlanContext& context_;
  ExecutorOptions options_;
};

// Bytes of a rank of these pipeline stages, of all where none is given, in any layout, without starting one: the arena,
// on a CPU the working memory of its threads and, on the first, of --async-save, on a GPU that of its operations and
// its graphs. If --logits-chunk, --keep-activations or --packed-weights is left to memory: with the fewest rows, and
// nothing kept that need not be.
std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context,
                                         std::span<const int> stages = {});

}  // namespace teratron
