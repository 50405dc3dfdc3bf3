// Recomputation chosen stage by stage under a memory cap: of each stage the way that costs least among those that fit.
// Stages' memories do not depend on one another, and no update gets faster where a stage makes more again, so the best
// way of each stage is in the pipeline's best.
#pragma once

#include <cstdint>
#include <limits>

#include "executor/recomputation.h"
#include "plan/search/layout_costs.h"
#include "train/plans/memory_plan.h"

namespace teratron::plan {

struct RecomputeLimits {
  std::int64_t room = 0;  // bytes of a rank
  double seconds = std::numeric_limits<double>::infinity();
};

struct ChosenRecomputation {
  Recomputation recompute;
  std::int64_t bytes = 0;  // of the fullest stage; beyond the room: it does not fit, with everything made again
  bool is_slow = false;    // the bound of its time is not below the limit: the search ended there
  std::int64_t plans = 0;  // of a stage's memory
};

// For a layout all of whose other parts are chosen. Ways are kinds in the first token slices (any number of up to 8,
// eighths of more) and in as few of the first layers of each cell as fit. The choice has the least sum over slices,
// which in a pipeline of slices is nearly the fastest.
ChosenRecomputation choose_recomputation(const TrainConfig& config, const MemoryPlanContext& context, Layout layout,
                                         const RecomputeLimits& limits, LayoutCosts& times);

}  // namespace teratron::plan
