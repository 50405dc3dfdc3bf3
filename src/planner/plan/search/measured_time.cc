#include "plan/search/measured_time.h"

#include <algorithm>
#include <bit>

#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"
#include "slicing/candidate_cuts.h"
#include "slicing/cost/slice_times.h"
#include "train/plans/pipeline_plan.h"

namespace teratron::plan {
namespace {

constexpr std::int64_t kGrid = 256;  // intervals of a sequence between which the slicers cut

// Factors of the times predicted for unusual pipelines: a prediction is off by one or two per cent, so less is no gain.
constexpr double kUneven = 1.02, kNoPowerOfTwo = 1.01, kSeveralCells = 1.02, kDeferred = 1.02;

double handicap_of(const Layout& layout) {
  double handicap = layout.virtual_stages > 1 ? kSeveralCells : 1;
  if (layout.defer_weight_gradients) handicap *= kDeferred;
  if (layout.token_slices.empty()) return handicap;
  const pipeline::TokenSlices slices = pipeline::parse_token_slices("--token-slices", layout.token_slices);
  if (!slices.lengths.empty() || !slices.cuts.empty()) return kUneven * handicap;
  return (std::has_single_bit(static_cast<unsigned>(slices.count)) ? 1 : kNoPowerOfTwo) * handicap;
}

// Everything is made again before the backward.
void add_recompute(pipeline::Costs& costs) {
  for (std::vector<pipeline::PassTimes>& cell : costs.passes) {
    for (pipeline::PassTimes& slice : cell) {
      slice = slice.plus({.backward = slice.forward, .backward_input = slice.forward});
    }
  }
}

}  // namespace

MeasuredTimes::MeasuredTimes(const TrainConfig& config, const slicing::Profile& profile)
    : config_(config), profile_(profile) {}

double MeasuredTimes::busiest_stage(const pipeline::MicroBatchCut& cut) const {
  const slicing::ProfileCosts costs(profile_, static_cast<int>(config_.layout.pipeline_parallel));
  double most = 0;
  for (int stage = 0; stage < costs.stages(); ++stage) {
    slicing::TokenSlice slice{.sequences = cut.sequences};
    double sum = 0;
    for (const std::int64_t length : cut.slice_tokens) {
      slice.length = length;
      const pipeline::PassTimes times = costs.passes(stage, slice);
      sum += times.forward + std::min(times.backward, times.backward_input + times.backward_weight);
      slice.context += length;
    }
    most = std::max(most, sum);
  }
  return most;
}

double MeasuredTimes::least(const Layout& layout) {
  if (is_to_be_chosen(layout)) return 0;
  double work = 0;
  for (const auto& [cut, count] : cuts_of(config_, layout)) work += count * busiest_stage(cut);
  return work * slowest_pace() / 1000;
}

std::vector<Layout> MeasuredTimes::chosen(const Layout& layout) {
  const std::int64_t unit = layout.sequence_parallel ? layout.tensor : 1;
  if (!table_) {
    const std::int64_t grid = slicing::slice_grid(config_.model.seq_length, unit, kGrid);
    const slicing::ProfileCosts costs(profile_, static_cast<int>(layout.pipeline));
    table_ = slicing::slowest_stage(costs, profile_.key.sequences, config_.model.seq_length, grid);
  }
  const std::int64_t cells = layout.virtual_stages, further = (layout.pipeline - 1 + cells - 1) / cells;
  std::vector<std::vector<std::int64_t>> cuts =
      slicing::candidate_cuts(*table_, {.fewest_tokens = kFewestSliceTokens,
                                        .most_slices = static_cast<std::size_t>(kMostSlices),
                                        .further = static_cast<int>(further),
                                        .micro_batches = static_cast<int>(micro_batches_of(config_, layout))});
  const std::int64_t shortest = profile_.stages.front().forward.lengths.front();  // that was measured
  std::erase_if(cuts, [&](const auto& lengths) { return std::ranges::min(lengths) < shortest; });
  return cut_into(layout, cuts);
}

StepTime MeasuredTimes::step(const Layout& layout) {
  const TrainConfig config = with_layout(config_, layout);
  const PipelinePlan plan = plan_pipeline(config, &profile_);
  const std::vector<std::int64_t> whole = {config.model.seq_length};
  pipeline::Costs costs = slicing::schedule_costs(slicing::ProfileCosts(profile_, plan.schedule.stages), plan.schedule,
                                                  plan.cuts.empty() ? slicing::alike(profile_, whole) : plan.cuts);
  if (layout.recompute != Recompute::kNone && profile_.key.recompute == "none") add_recompute(costs);
  const pipeline::Simulation run = pipeline::simulate(plan.schedule, costs);
  const double milliseconds = handicap_of(layout) * slowest_pace() * run.iteration;
  StepTime time{.seconds = (milliseconds + profile_.update) / 1000,
                .pipeline_seconds = milliseconds / 1000,
                .bubble_share = run.bubble_share()};
  time.tokens_per_second = static_cast<double>(config.largest_batch() * config.model.seq_length) / time.seconds;
  return time;
}

}  // namespace teratron::plan
