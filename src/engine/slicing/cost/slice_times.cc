#include "slicing/cost/slice_times.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "pipeline/token_slices.h"
#include "slicing/slicer.h"

namespace teratron::slicing {
namespace {

using Lengths = std::vector<std::int64_t>;
using pipeline::PassTimes;

constexpr std::int64_t kSteps = 256;  // of the grid that slices are cut on
// Messages of a slice's hidden states that a stage waits for in a joint pass: a sum over stages comes to two.
constexpr double kLookUpMessages = 2, kHeadMessages = 3, kLookUpBackwardMessages = 1;

// Numbers of "6,6"; empty: not such a list.
std::vector<std::int64_t> layers_of_stages(const std::string& text) {
  std::vector<std::int64_t> layers;
  for (const char *begin = text.data(), *end = begin + text.size(); begin <= end;) {
    const auto [stop, error] = std::from_chars(begin, end, layers.emplace_back());
    if (error != std::errc() || layers.back() < 1 || (stop != end && *stop != ',')) return {};
    begin = stop + 1;
  }
  return layers;
}

PassTimes less(const PassTimes& whole, const PassTimes& part) {
  return {.backward = std::max(0.0, whole.backward - part.backward),
          .backward_input = std::max(0.0, whole.backward_input - part.backward_input),
          .backward_weight = std::max(0.0, whole.backward_weight - part.backward_weight)};
}

pipeline::Costs undisturbed(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts, const CellWork& work = {}) {
  return schedule_costs(ProfileCosts(profile, schedule.stages, work), schedule, cuts);
}

// Even cuts on the grid: few numbers of slices, since the time hardly changes between neighbours of large numbers.
std::vector<Lengths> even_cuts(std::int64_t tokens, std::int64_t step) {
  std::vector<Lengths> cuts;
  const std::int64_t steps = tokens / step;
  for (const int count : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64}) {
    if (count > steps) break;
    Lengths lengths = pipeline::even_slices(steps, count);
    for (std::int64_t& length : lengths) length *= step;
    lengths.front() += tokens - steps * step;
    cuts.push_back(std::move(lengths));
  }
  return cuts;
}

// Algorithm 1's cuts for the slowest stage. Fewer further stages give longer slices.
std::vector<Lengths> uneven_cuts(const SliceCosts& costs, std::int64_t sequences, std::int64_t tokens,
                                 std::int64_t step, int micro_batches) {
  const CostTable table = slowest_stage(costs, sequences, tokens, step);
  const double epsilon = 1e-4 * table.of(0, table.intervals());
  std::vector<Lengths> cuts;
  for (int quarters = 1; quarters <= 16; quarters *= 2) {
    const int further = std::max(1, (costs.stages() - 1) * quarters / 4);
    cuts.push_back(
        best_slicing(table, {.stages = 1 + further, .micro_batches = micro_batches, .epsilon = epsilon}).lengths);
  }
  return cuts;
}

}  // namespace

double together_share(const pipeline::Simulation& simulation) {
  const auto stages = static_cast<double>(simulation.busy.size());
  if (stages == 1) return 1;
  return std::max(0.0, 1 - simulation.bubble_share() * stages / (stages - 1));
}

ProfileCosts::ProfileCosts(const Profile& profile, int stages, CellWork work)
    : profile_(profile), stages_(stages), work_(std::move(work)) {
  measured_layers_ = layers_of_stages(profile.key.cell_layers);
  if (profile.stages.size() < 2 || measured_layers_.size() != profile.stages.size()) measured_layers_.clear();
}

std::size_t ProfileCosts::measured(int stage) const {
  const auto last = static_cast<std::size_t>(stages_ - 1);
  return last == 0 ? 0 : (static_cast<std::size_t>(stage) * (profile_.stages.size() - 1) + last / 2) / last;
}

PassTimes ProfileCosts::passes(int stage, const TokenSlice& slice) const {
  const double size = static_cast<double>(slice.sequences) / static_cast<double>(profile_.key.sequences);
  return profile_.stages[measured(stage)].times(slice.length, slice.context).times(size);
}

PassTimes ProfileCosts::layer(int stage, const TokenSlice& slice) const {
  const double layers = static_cast<double>(measured_layers_[measured(stage)]);
  const PassTimes times = passes(stage, slice).times(1 / layers);
  if (measured(stage) + 1 < profile_.stages.size()) return times;
  PassTimes others;
  for (std::size_t other = 0; other + 1 < profile_.stages.size(); ++other) {
    others = others.plus(profile_.stages[other].times(slice.length, slice.context));
  }
  return others.times(times.forward / others.forward);
}

PassTimes ProfileCosts::head(const TokenSlice& slice) const {
  return less(passes(stages_ - 1, slice),
              layer(stages_ - 1, slice).times(static_cast<double>(measured_layers_.back())));
}

PassTimes ProfileCosts::joint_ends(const TokenSlice& slice) const {
  const double once = message(slice);
  return {.embedding = kLookUpMessages * once,
          .head = head(slice).backward / stages_ + kHeadMessages * once,
          .embedding_backward = kLookUpBackwardMessages * once};
}

PassTimes ProfileCosts::cell_passes(const pipeline::Schedule& schedule, int cell, const TokenSlice& slice) const {
  if (work_.layers.empty() || !knows_layers()) return SliceCosts::cell_passes(schedule, cell, slice);
  const auto layers = static_cast<double>(work_.layers[static_cast<std::size_t>(cell)]);
  const PassTimes times = layer(schedule.stage_of(cell), slice).times(layers);
  if (work_.vocabulary_parallel) return times.plus(joint_ends(slice));
  return cell + 1 == schedule.cells() ? times.plus(head(slice)) : times;
}

std::vector<pipeline::MicroBatchCut> alike(const Profile& profile, std::span<const std::int64_t> lengths) {
  return {{.sequences = profile.key.sequences, .slice_tokens = {lengths.begin(), lengths.end()}}};
}

pipeline::Costs paced_costs(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts, const CellWork& work) {
  pipeline::Costs costs = undisturbed(profile, schedule, cuts, work);
  const double pace = profile.pace.of(together_share(pipeline::simulate(schedule, costs)));
  for (std::vector<PassTimes>& cell : costs.passes) {
    for (PassTimes& slice : cell) slice = slice.times(pace);
  }
  for (double& transfer : costs.transfers) transfer *= pace;
  return costs;
}

double pipeline_milliseconds(const Profile& profile, const pipeline::Schedule& schedule,
                             std::span<const pipeline::MicroBatchCut> cuts) {
  const pipeline::Simulation simulation = pipeline::simulate(schedule, undisturbed(profile, schedule, cuts));
  return simulation.iteration * profile.pace.of(together_share(simulation));
}

pipeline::Schedule schedule_of(const MeasuredIteration& iteration, int stages) {
  return pipeline::make_schedule(
      iteration.micro_batches == 1 ? pipeline::ScheduleKind::kTeraPipe : pipeline::ScheduleKind::kSeq1F1B,
      {.stages = stages,
       .micro_batches = iteration.micro_batches,
       .slices = static_cast<int>(iteration.slices.size())});
}

double predicted_milliseconds(const Profile& profile, const MeasuredIteration& iteration) {
  const int stages = static_cast<int>(profile.stages.size());
  return pipeline_milliseconds(profile, schedule_of(iteration, stages), alike(profile, iteration.slices));
}

std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, pipeline::ScheduleSize size) {
  check(pipeline::traits_of(schedule).takes_slices, "the schedule takes slices");
  // A steady state shows after as many micro-batches as there are stages; more of them only take longer.
  size.micro_batches = std::min(size.micro_batches, 2 * size.stages);
  const std::int64_t step = slice_grid(tokens, profile.key.unit(), kSteps);
  Lengths best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](Lengths lengths, double handicap) {
    size.slices = static_cast<int>(lengths.size());
    const pipeline::Schedule cut = pipeline::make_schedule(schedule, size);
    const double time = handicap * pipeline_milliseconds(profile, cut, alike(profile, lengths));
    if (time >= least) return;
    least = time;
    best = std::move(lengths);
  };
  for (Lengths& lengths : even_cuts(tokens, step)) {
    const bool is_power_of_two = std::has_single_bit(lengths.size());
    consider(std::move(lengths), is_power_of_two ? 1 : 1.01);
  }
  const ProfileCosts costs(profile, size.stages);
  for (Lengths& lengths : uneven_cuts(costs, profile.key.sequences, tokens, step, size.micro_batches)) {
    consider(std::move(lengths), 1.02);
  }
  return best;
}

}  // namespace teratron::slicing
