// Times of layouts by a measured profile of their ranks: layouts that differ in the pipeline alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "plan/search/layout_costs.h"
#include "slicing/cost/cost_table.h"
#include "slicing/cost/profile.h"

namespace teratron::plan {

// Predictions are off by one or two per cent, so a simpler way wins a near tie: even slices whose number is no power of
// two count as 1 % slower than predicted; uneven slices, several cells a stage and deferred weight gradients as 2 %
// each. Slices are no shorter than any that was measured. A profile without recomputation prices it as a forward more,
// which a selective one is not.
class MeasuredTimes : public LayoutCosts {
 public:
  MeasuredTimes(const TrainConfig& config, const slicing::Profile& profile);  // refers to both

  double least(const Layout& layout) override;
  std::vector<Layout> chosen(const Layout& layout) override;
  StepTime step(const Layout& layout) override;

 private:
  // Pace of all pipelines: one that falls as stages wait would make a pipeline that waits look fast.
  double slowest_pace() const { return std::max(profile_.pace.alone, profile_.pace.together); }
  // Milliseconds of forward and backward, in one part or two.
  double busiest_stage(const pipeline::MicroBatchCut& cut) const;

  const TrainConfig& config_;
  const slicing::Profile& profile_;
  std::optional<slicing::CostTable> table_;  // of the slowest stage
};

}  // namespace teratron::plan
