#include "slicing/auto_slices.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "pipeline/token_slices.h"
#include "slicing/candidate_cuts.h"
#include "slicing/cost/iteration_times.h"

namespace teratron::slicing {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t kSteps = 256;      // of the grid that slices are cut on
constexpr double kMostSimulated = 16384;  // actions of an update that is simulated whole

// Even cuts on the grid. Few large numbers of slices are tried, since neighbouring ones take about the same time.
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

// Milliseconds of an update until its last pass. A long update is simulated up to some micro-batches, at which the
// pipeline is in its steady state; each further one takes as long as the last of those.
double update_milliseconds(const Profile& profile, pipeline::ScheduleKind kind, pipeline::ScheduleSize size,
                           const Lengths& lengths) {
  const auto simulated = [&](int micro_batches) {
    size.micro_batches = micro_batches;
    return pipeline_milliseconds(profile, pipeline::make_schedule(kind, size), alike(profile, lengths));
  };
  const int all = size.micro_batches;
  const double actions_of_round = pipeline::count_actions(size) / all * size.stages;
  const int most = std::max(2, static_cast<int>(kMostSimulated / actions_of_round)) * size.stages;
  if (all <= most) return simulated(all);
  const double end = simulated(most);
  return end + (all - most) * (end - simulated(most - size.stages)) / size.stages;
}

}  // namespace

std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, pipeline::ScheduleSize size) {
  check(pipeline::traits_of(schedule).takes_slices, "the schedule takes slices");
  const std::int64_t step = slice_grid(tokens, profile.key.unit(), kSteps);
  Lengths best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](Lengths lengths, double handicap) {
    size.slices = static_cast<int>(lengths.size());
    if (!best.empty() && pipeline::count_actions(size) > static_cast<double>(pipeline::kMostActions)) return;
    const double time = handicap * update_milliseconds(profile, schedule, size, lengths);
    if (time >= least) return;
    least = time;
    best = std::move(lengths);
  };
  for (Lengths& lengths : even_cuts(tokens, step)) {
    const bool is_power_of_two = std::has_single_bit(lengths.size());
    consider(std::move(lengths), is_power_of_two ? 1 : 1.01);
  }
  const CostTable table = slowest_stage(ProfileCosts(profile, size.stages), profile.key.sequences, tokens, step);
  const CutLimits limits{.further = size.stages - 1, .micro_batches = size.micro_batches};
  for (Lengths& lengths : algorithm_1_cuts(table, limits)) consider(std::move(lengths), 1.02);
  return best;
}

}  // namespace teratron::slicing
