// The best layouts of a model on a cluster: those that fit and have the fastest simulated step. Layouts are simulated
// in the order of a lower bound of their time (plan/search/layout_time.h). The search ends when no bound is below the
// times found, so its result is that of simulating all layouts. Where the mesh is given, one that does not fit is
// looked at again with recomputation chosen stage by stage (recompute_choice.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cluster/cluster.h"
#include "plan/costs/step_time.h"
#include "plan/search/layout.h"
#include "plan/search/layout_memory.h"

namespace teratron::plan {

struct PlanRequest {
  // Model, sequences, global batch and precision. Its layout may have faults, and does not matter but for a
  // --pipeline-layout.
  TrainConfig config;
  Cluster cluster;
  std::int64_t vocab_size = 0;  // where the model has none
  FixedLayout fixed;
  const slicing::Profile* profile = nullptr;  // measured times, in place of those of the cluster's devices

  MemoryPlanContext context() const { return memory_context(config, vocab_size, cluster); }
};

// Seconds of a step by their cause, the mean of its stages.
struct StepParts {
  double compute = 0;    // what one device would do too
  double recompute = 0;  // activations made again
  double tensor = 0;     // collectives of tensor parallelism
  double bubble = 0;     // waiting for other stages, their messages, and weights that copies share out
  double after = 0;      // sums of gradients that nothing hides, and the update
  double seconds() const { return compute + recompute + tensor + bubble + after; }
};
StepParts parts_of(const PlanRequest& request, const Layout& layout, const StepTime& time);

// The parts of a step that take longer than another's, largest first: "bubble +12.3 %, recompute +2.1 %" of the
// other's.
std::string why_slower(const StepParts& parts, const StepParts& than);

struct PlannedLayout {
  Layout layout;
  TrainConfig config;
  // Planned bytes of a rank of each stage; of a runner-up those of the fullest stage alone.
  std::vector<std::int64_t> memory;
  StepTime time;
  StepParts parts;
};

struct SearchResult {
  std::int64_t devices = 0;  // that the layouts use: the cluster's, or the most below on which there is any
  // The fastest of each (tp, pp, dp) or, where these are fixed, of each schedule, number of cells and place of the
  // vocabulary; the fastest of all first.
  std::vector<PlannedLayout> best;
  std::int64_t layouts = 0, too_large = 0, simulated = 0, planned = 0;  // too_large: as far as they were looked at
  // The layout that needs least, if nothing fits.
  std::optional<Layout> smallest;
  std::int64_t smallest_bytes = 0;
};

class NoLayoutError : public UserError {
 public:
  using UserError::UserError;
};

// Layouts on as many of the cluster's devices as any layout can use. NoLayoutError: there is none.
std::vector<Layout> layouts_of(const PlanRequest& request);

// Findings that searches of one model and batch on several clusters share: all layouts, and the memory of those that a
// search has looked at. The clusters have equally many devices, of one kind (PlanRequest::context()).
struct KnownLayouts {
  std::vector<std::pair<Layout, std::int64_t>> least;  // LayoutMemory::least() of each that has no fault
  std::map<Layout, FullestEnd> fullest;                // as far as it is planned
};

// `runners_up`: at most so many beside the best. UserError where no layout has as many devices or fewer.
SearchResult search_layouts(const PlanRequest& request, std::size_t runners_up = 5);
// Searches likewise, beside other searches: reads their findings from `known` and adds its own.
SearchResult search_layouts(const PlanRequest& request, std::size_t runners_up, KnownLayouts& known);
// Only the fastest layout: `start`, which fits, or a faster one.
SearchResult search_from(const PlanRequest& request, const PlannedLayout& start);

}  // namespace teratron::plan
