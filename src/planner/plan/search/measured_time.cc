#include "plan/search/measured_time.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "pipeline/timing/simulate.h"
#include "slicing/candidate_cuts.h"
#include "train/plans/pipeline_plan.h"

namespace teratron::plan {
namespace {

constexpr std::int64_t kGrid = 256;  // intervals of a sequence between which the slicers cut

// Oddness of slices: 0 of whole sequences.
int oddness_of_slices(const Layout& layout) {
  if (layout.slicing.is_whole()) return 0;
  const pipeline::TokenSlices slices = layout.slicing.slices();
  if (!slices.lengths.empty() || !slices.cuts.empty()) return 3;
  return std::has_single_bit(static_cast<unsigned>(slices.count)) ? 1 : 2;
}

double time_of(const pipeline::PassTimes& times) {
  return times.forward + std::min(times.backward, times.backward_input + times.backward_weight);
}

// Layers of each stage.
std::vector<double> stage_layers(const StepSettings& settings, const Layout& layout) {
  std::vector<double> stages;
  for (const std::vector<std::int64_t>& cells : stage_cells(settings, layout)) {
    stages.push_back(static_cast<double>(std::accumulate(cells.begin(), cells.end(), std::int64_t{0})));
  }
  return stages;
}

// Layers are made again before their backward.
void add_recompute(const PipelinePlan& plan, const Recomputation& recompute, pipeline::Costs& costs) {
  for (std::size_t cell = 0; cell < costs.passes.size(); ++cell) {
    const StageRecompute& way = recompute.of(plan.schedule.stage_of(static_cast<int>(cell)));
    const std::int64_t layers = plan.cell_layers[cell];
    std::vector<std::size_t> firsts = costs.first_columns;
    if (firsts.empty()) firsts.push_back(0);
    for (std::size_t column = 0; column < costs.passes[cell].size(); ++column) {
      const std::size_t first = *std::prev(std::ranges::upper_bound(firsts, column));
      pipeline::PassTimes& slice = costs.passes[cell][column];
      const auto again = static_cast<double>(way.layers_of(layers, static_cast<std::int64_t>(column - first)));
      const double forward = slice.forward * again / static_cast<double>(layers);
      slice = slice.plus({.backward = forward, .backward_input = forward});
    }
  }
}

}  // namespace

MeasuredTimes::MeasuredTimes(const StepSettings& settings, const slicing::Profile& profile)
    : settings_(settings), profile_(profile), fit_(slicing::fit_iterations(profile)) {}

double MeasuredTimes::handicap_of(const Layout& layout) const {
  int oddness = oddness_of_slices(layout);
  for (const bool odd :
       {layout.virtual_stages > 1, layout.defer_weight_gradients, !layout.layers.empty(), layout.vocabulary_parallel}) {
    oddness += odd ? 2 : 0;
  }
  return 1 + std::clamp(fit_.error, kLeastDoubt, kMostDoubt) * (1 - std::exp2(-oddness));
}

bool MeasuredTimes::adds_recompute(const Layout& layout) const {
  return layout.recompute != Recompute::kNone && profile_.key.recompute == name_of(Recompute::kNone);
}

std::vector<double> MeasuredTimes::again(const Layout& layout, int stage, Recompute kind) {
  const slicing::ProfileCosts costs(profile_, static_cast<int>(layout.pipeline));
  const double held = stage_layers(settings_, layout)[static_cast<std::size_t>(stage)];
  std::vector<double> seconds;
  for (const auto& [cut, count] : cuts_of(settings_, layout)) {
    slicing::TokenSlice slice{.sequences = cut.sequences};
    if (cut.slice_tokens.size() > seconds.size()) seconds.resize(cut.slice_tokens.size());
    for (std::size_t number = 0; number < cut.slice_tokens.size(); ++number) {
      slice.length = cut.slice_tokens[number];
      const double forward =
          costs.knows_layers() ? costs.layer(stage, slice).forward : costs.passes(stage, slice).forward / held;
      if (kind != Recompute::kNone) seconds[number] += count * slowest_pace() * forward / 1000;
      slice.context += slice.length;
    }
  }
  return seconds;
}

double MeasuredTimes::busiest_stage(const Layout& layout, const pipeline::MicroBatchCut& cut) const {
  const slicing::ProfileCosts costs(profile_, static_cast<int>(layout.pipeline));
  const std::vector<double> layers = stage_layers(settings_, layout);
  const int stages = costs.stages();
  const bool knows = costs.knows_layers(), shares = layout.vocabulary_parallel;
  const int with_head = pipeline::CellMap{stages, pipeline::traits_of(layout.schedule).placement}.stage_of(
      stages * static_cast<int>(layout.virtual_stages) - 1);
  const double passes = 2 * static_cast<double>(layout.virtual_stages) + (shares ? 3 : 0);  // of a slice, at least
  std::vector<double> of_stage(layers.size());
  double all = 0;  // of any dealing's stages together
  slicing::TokenSlice slice{.sequences = cut.sequences};
  for (const std::int64_t length : cut.slice_tokens) {
    slice.length = length;
    const double head = knows && !shares ? time_of(costs.head(slice)) : 0;
    const double everywhere = passes * fit_.beside_pass + (knows && shares ? costs.joint_ends(slice).head : 0);
    double fastest = std::numeric_limits<double>::infinity();
    for (int stage = 0; stage < stages; ++stage) {
      const double held = layers[static_cast<std::size_t>(stage)];
      const double layer = knows ? time_of(costs.layer(stage, slice)) : time_of(costs.passes(stage, slice)) / held;
      of_stage[static_cast<std::size_t>(stage)] += held * layer + everywhere + (stage == with_head ? head : 0);
      fastest = std::min(fastest, layer);
    }
    all += static_cast<double>(settings_.model.config.num_layers) * fastest + stages * everywhere + head;
    slice.context += length;
  }
  return layout.deals_layers ? all / stages : std::ranges::max(of_stage);
}

double MeasuredTimes::least(const Layout& layout) {
  if (layout.slicing.is_open()) return 0;
  double work = 0;
  for (const auto& [cut, count] : cuts_of(settings_, layout)) work += count * busiest_stage(layout, cut);
  return handicap_of(layout) * work * slowest_pace() / 1000;
}

std::vector<Layout> MeasuredTimes::chosen(const Layout& layout) {
  const std::int64_t unit = layout.sequence_parallel ? layout.tensor : 1;
  if (!table_) {
    const std::int64_t grid = slicing::slice_grid(settings_.model.seq_length, unit, kGrid);
    const slicing::ProfileCosts costs(profile_, static_cast<int>(layout.pipeline));
    table_ = slicing::slowest_stage(costs, profile_.key.sequences, settings_.model.seq_length, grid);
  }
  const std::int64_t cells = layout.virtual_stages, further = (layout.pipeline - 1 + cells - 1) / cells;
  std::vector<std::vector<std::int64_t>> cuts =
      slicing::candidate_cuts(*table_, {.fewest_tokens = kFewestSliceTokens,
                                        .most_slices = static_cast<std::size_t>(kMostSlices),
                                        .further = static_cast<int>(further),
                                        .micro_batches = static_cast<int>(micro_batches_of(settings_, layout))});
  const std::int64_t shortest = profile_.stages.front().forward.lengths.front();  // that was measured
  std::erase_if(cuts, [&](const auto& lengths) { return std::ranges::min(lengths) < shortest; });
  return cut_into(layout, cuts);
}

StepTime MeasuredTimes::step(const Layout& layout) {
  const StepSettings settings = with_layout(settings_, layout);
  const PipelinePlan plan = plan_pipeline(settings, &profile_);
  const std::vector<std::int64_t> whole = {settings.model.seq_length};
  const slicing::ProfileCosts measured(
      profile_, plan.schedule.stages,
      {.layers = plan.cell_layers, .vocabulary_parallel = settings.pipeline.vocabulary_parallel});
  pipeline::Costs costs =
      slicing::schedule_costs(measured, plan.schedule, plan.cuts.empty() ? slicing::alike(profile_, whole) : plan.cuts);
  if (adds_recompute(layout)) add_recompute(plan, layout.recompute, costs);
  slicing::add_to_passes(costs, fit_.beside_pass);
  const pipeline::Simulation run = pipeline::simulate(plan.schedule, costs);
  const double milliseconds = handicap_of(layout) * slowest_pace() * run.iteration;
  StepTime time{.seconds = (milliseconds + profile_.update) / 1000,
                .pipeline_seconds = milliseconds / 1000,
                .bubble_share = run.bubble_share()};
  time.tokens_per_second = static_cast<double>(settings.largest_batch() * settings.model.seq_length) / time.seconds;
  return time;
}

}  // namespace teratron::plan
