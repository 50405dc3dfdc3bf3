// Recomputation chosen stage by stage under a memory cap: for each stage the least costly way that fits. Stages'
// memories do not depend on one another, and no update gets faster when a stage recomputes more, so the pipeline's best
// has the best way of each stage.
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
  std::int64_t bytes = 0;  // of the fullest stage; more than the room: not even full recomputation fits
  bool is_slow = false;    // the bound of its time reached the limit, and the search ended
  std::int64_t plans = 0;  // of a stage's memory
};

// All other parts of the layout are chosen. Ways are kinds in the first token slices (any number of up to 8,
// eighths of more) and in as few of the first layers of each cell as fit. The choice has the least sum over slices,
// which in a pipeline of slices is nearly the fastest.
ChosenRecomputation choose_recomputation(const TrainConfig& config, const MemoryPlanContext& context, Layout layout,
                                         const RecomputeLimits& limits, LayoutCosts& times);

}  // namespace teratron::plan
