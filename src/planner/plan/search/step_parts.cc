// Where the time of a step goes.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "plan/costs/layer_costs.h"
#include "plan/search/layout_search.h"
#include "plan/search/layout_time.h"

namespace teratron::plan {
namespace {

constexpr double kWorthNaming = 0.002;  // of the other's step
constexpr std::size_t kMostReasons = 3;

// Collectives take no time there.
Cluster with_instant_links(Cluster cluster) {
  for (LinkLevel& level : cluster.links) {
    level.bandwidth *= 1e12;
    level.latency = 0;
  }
  return cluster;
}

// The time of all micro-batches in a layer that makes nothing again.
double layer_seconds(const PlanRequest& request, const Layout& layout, const Cluster& cluster) {
  const ModelCosts costs(request.config.model.model_for(request.vocab_size),
                         {.tensor = layout.tensor,
                          .groups = layout.devices() / layout.tensor,
                          .sequence_parallel = layout.sequence_parallel,
                          .dtype = request.config.backend.compute_dtype()},
                         cluster);
  double milliseconds = 0;
  for (const auto& [cut, count] : cuts_of(request.config, layout)) {
    Slice slice{.sequences = cut.sequences};
    for (const std::int64_t tokens : cut.slice_tokens) {
      slice.tokens = tokens;
      const pipeline::PassTimes times = costs.layer(slice);
      milliseconds += count * (times.forward + times.backward);
      slice.context += tokens;
    }
  }
  return milliseconds / 1000;
}

// The mean of the stages.
double recompute_seconds(const PlanRequest& request, const Layout& layout) {
  if (layout.recompute == Recompute::kNone) return 0;
  LayoutTimes times(request.config, request.cluster, request.vocab_size);
  const std::vector<std::vector<std::int64_t>> stages = stage_cells(request.config, layout);
  double sum = 0;
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    const StageRecompute& way = layout.recompute.of(stage);
    sum += again_of(way, stages[static_cast<std::size_t>(stage)], times.again(layout, stage, way.kind));
  }
  return sum / static_cast<double>(stages.size());
}

}  // namespace

StepParts parts_of(const PlanRequest& request, const Layout& layout, const StepTime& time) {
  const Cluster instant = with_instant_links(request.cluster);
  const double kept = layer_seconds(request, layout, request.cluster), alone = layer_seconds(request, layout, instant);
  const double layers =
      static_cast<double>(request.config.model.config.num_layers) / static_cast<double>(layout.pipeline);
  StepParts parts{.recompute = recompute_seconds(request, layout),
                  .tensor = layers * (kept - alone),
                  .bubble = time.pipeline_seconds * time.bubble_share,
                  .after = time.seconds - time.pipeline_seconds};
  parts.compute = time.pipeline_seconds - parts.bubble - parts.recompute - parts.tensor;
  return parts;
}

std::string why_slower(const StepParts& parts, const StepParts& than) {
  const double whole = than.seconds();
  std::array<std::pair<double, const char*>, 5> more = {{{parts.compute - than.compute, "products and passes"},
                                                         {parts.recompute - than.recompute, "recompute"},
                                                         {parts.tensor - than.tensor, "tensor-parallel collectives"},
                                                         {parts.bubble - than.bubble, "bubble"},
                                                         {parts.after - than.after, "gradient sums and update"}}};
  std::ranges::stable_sort(more, std::greater(), &std::pair<double, const char*>::first);
  std::vector<std::string> reasons;
  for (const auto& [seconds, what] : more) {
    if (seconds < kWorthNaming * whole || reasons.size() == kMostReasons) break;
    reasons.push_back(fmt::format("{} +{:.1f} %", what, 100 * seconds / whole));
  }
  return reasons.empty() ? "as fast" : fmt::format("{}", fmt::join(reasons, ", "));
}

}  // namespace teratron::plan
