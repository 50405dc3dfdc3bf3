// Times of layouts, which a search ranks them by: by the cluster's model (layout_time.h) or by a measured profile
// (measured_time.h).
#pragma once

#include <vector>

#include "plan/costs/step_time.h"
#include "plan/search/layout.h"

namespace teratron::plan {

class LayoutCosts {
 public:
  virtual ~LayoutCosts() = default;
  // Seconds that no update of the layout beats, whatever slices are chosen and whether weight gradients are deferred.
  virtual double least(const Layout& layout) = 0;
  // The layouts with slices that are worth a simulation, of one whose slices are to be chosen.
  virtual std::vector<Layout> chosen(const Layout& layout) = 0;
  virtual StepTime step(const Layout& layout) = 0;
};

}  // namespace teratron::plan
