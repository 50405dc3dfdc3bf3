#include "slicing/cost/slice_times.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "base/median.h"
#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"
#include "slicing/slicer.h"

namespace teratron::slicing {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t kSteps = 256;  // of the grid that slices are cut on
constexpr double kApart = 0.1;        // least difference of two iterations' shares that gives a slope
constexpr double kSlowest = 0.01;     // of a pace: never 0, however odd the measurements

// 0 where one stage works at a time, 1 where all of them always do.
double together_share(const pipeline::Simulation& simulation) {
  const auto stages = static_cast<double>(simulation.busy.size());
  if (stages == 1) return 1;
  return std::max(0.0, 1 - simulation.bubble_share() * stages / (stages - 1));
}

pipeline::Costs undisturbed(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts) {
  return schedule_costs(ProfileCosts(profile, schedule.stages), schedule, cuts);
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

pipeline::PassTimes ProfileCosts::passes(int stage, const TokenSlice& slice) const {
  const auto last = static_cast<std::size_t>(stages_ - 1);
  const std::size_t measured =
      last == 0 ? 0 : (static_cast<std::size_t>(stage) * (profile_.stages.size() - 1) + last / 2) / last;
  const double size = static_cast<double>(slice.sequences) / static_cast<double>(profile_.key.sequences);
  return profile_.stages[measured].times(slice.length, slice.context).times(size);
}

std::vector<pipeline::MicroBatchCut> alike(const Profile& profile, std::span<const std::int64_t> lengths) {
  return {{.sequences = profile.key.sequences, .slice_tokens = {lengths.begin(), lengths.end()}}};
}

pipeline::Costs paced_costs(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts) {
  pipeline::Costs costs = undisturbed(profile, schedule, cuts);
  const double pace = profile.pace.of(together_share(pipeline::simulate(schedule, costs)));
  for (std::vector<pipeline::PassTimes>& cell : costs.passes) {
    for (pipeline::PassTimes& slice : cell) slice = slice.times(pace);
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

Pace pace_of(const Profile& profile) {
  struct Point {
    double together, pace;
  };
  std::vector<Point> points;
  for (const MeasuredIteration& iteration : profile.iterations) {
    if (iteration.held_out) continue;
    const pipeline::Schedule schedule = schedule_of(iteration, static_cast<int>(profile.stages.size()));
    const pipeline::Simulation simulation =
        pipeline::simulate(schedule, undisturbed(profile, schedule, alike(profile, iteration.slices)));
    points.push_back({together_share(simulation), iteration.pipeline / simulation.iteration});
  }
  check(!points.empty(), "a pace needs an iteration");
  // The median of the slopes between any two points (Theil and Sen) ignores an iteration that was disturbed.
  std::vector<double> slopes, starts;
  for (const Point& a : points) {
    for (const Point& b : points) {
      if (b.together - a.together > kApart) slopes.push_back((b.pace - a.pace) / (b.together - a.together));
    }
  }
  const double slope = slopes.empty() ? 0 : median(std::move(slopes));
  for (const Point& point : points) starts.push_back(point.pace - slope * point.together);
  const double start = median(std::move(starts));
  return {.alone = std::max(start, kSlowest), .together = std::max(start + slope, kSlowest)};
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
