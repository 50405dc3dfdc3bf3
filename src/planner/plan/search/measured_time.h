// Times of layouts by a measured profile of their ranks: layouts that differ in the pipeline alone.
#pragma once

#include <algorithm>
#include <optional>

#include "plan/search/layout_costs.h"
#include "slicing/cost/cost_table.h"
#include "slicing/cost/iteration_times.h"

namespace teratron::plan {

// Predictions are off, so a simpler way wins a near tie: a pipeline counts as slower by a part of kLeastDoubt, or of
// the error of the profile's own iterations where they are off by more (kMostDoubt at most). The part is half for even
// slices whose number is a power of two, and nears the whole as slices are of other numbers or uneven, cells several or
// of unequal layers, weight gradients deferred, the vocabulary shared. So no choice is further from the best than
// predictions are off and the doubt together. Slices are no shorter than any that was measured. A profile without
// recomputation prices it as a forward more, which a selective one is not. Passes take the time beside a pass, too
// (slicing/cost/iteration_times.h).
class MeasuredTimes : public LayoutCosts {
 public:
  static constexpr double kLeastDoubt = 0.02, kMostDoubt = 0.05;

  MeasuredTimes(const StepSettings& settings, const slicing::Profile& profile);  // refers to both

  double least(const Layout& layout) override;
  std::vector<Layout> chosen(const Layout& layout) override;
  StepTime step(const Layout& layout) override;
  std::vector<double> again(const Layout& layout, int stage, Recompute kind) override;

 private:
  // Pace of all pipelines: one that falls as stages wait would make a pipeline that waits look fast.
  double slowest_pace() const { return std::max(fit_.pace.alone, fit_.pace.together); }
  double handicap_of(const Layout& layout) const;
  bool adds_recompute(const Layout& layout) const;
  // Milliseconds of forward and backward, in one part or two.
  double busiest_stage(const Layout& layout, const pipeline::MicroBatchCut& cut) const;

  const StepSettings& settings_;
  const slicing::Profile& profile_;
  const slicing::IterationFit fit_;
  std::optional<slicing::CostTable> table_;  // of the slowest stage
};

}  // namespace teratron::plan
