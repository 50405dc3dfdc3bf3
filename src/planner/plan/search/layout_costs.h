// Times by which a search ranks layouts: of the cluster's cost model (layout_time.h) or of a measured profile
// (measured_time.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/costs/step_time.h"
#include "plan/search/layout.h"

namespace teratron::plan {

class LayoutCosts {
 public:
  virtual ~LayoutCosts() = default;
  // Seconds that no update of the layout beats, whatever slices are chosen and whether weight gradients are deferred.
  virtual double least(const Layout& layout) = 0;
  // For a layout with open slices: copies of it with the slices that are worth a simulation.
  virtual std::vector<Layout> chosen(const Layout& layout) = 0;
  virtual StepTime step(const Layout& layout) = 0;
  // [slice] seconds of an update that recomputing one layer of the stage takes. The layout's slices are chosen.
  virtual std::vector<double> again(const Layout& layout, int stage, Recompute kind) = 0;
};

// Seconds of recomputation of a stage. `cells`: layers of each; `of_layer`: [slice] seconds of a layer.
inline double again_of(const StageRecompute& recompute, std::span<const std::int64_t> cells,
                       std::span<const double> of_layer) {
  double sum = 0;
  for (std::size_t slice = 0; slice < of_layer.size(); ++slice) {
    for (const std::int64_t layers : cells) {
      sum += static_cast<double>(recompute.layers_of(layers, static_cast<std::int64_t>(slice))) * of_layer[slice];
    }
  }
  return sum;
}

}  // namespace teratron::plan
