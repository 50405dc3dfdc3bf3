#include "slicing/cost/iteration_times.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/median.h"
#include "pipeline/generators.h"

namespace teratron::slicing {
namespace {

constexpr double kApart = 0.1;     // least difference of two iterations' shares that gives a slope
constexpr double kSlowest = 0.01;  // the least pace, so that odd measurements never give 0
constexpr int kSearchSteps = 40;   // of the search for the time beside a pass
constexpr double kGain = 0.9;      // such a time counts if it brings the error below this part of the error without

// Costs of a schedule by the profile's passes, without a pace.
pipeline::Costs undisturbed(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts, const CellWork& work = {}) {
  return schedule_costs(ProfileCosts(profile, schedule.stages, work), schedule, cuts);
}

struct Point {
  double together = 0, pace = 0;  // pace: measured over simulated
  bool held_out = false;
};

std::vector<Point> points_of(const Profile& profile, double beside_pass) {
  std::vector<Point> points;
  for (const MeasuredIteration& iteration : profile.iterations) {
    const pipeline::Schedule schedule = schedule_of(iteration, static_cast<int>(profile.stages.size()));
    pipeline::Costs costs = undisturbed(profile, schedule, alike(profile, iteration.slices));
    add_to_passes(costs, beside_pass);
    const pipeline::Simulation simulation = pipeline::simulate(schedule, costs);
    points.push_back({together_share(simulation), iteration.pipeline / simulation.iteration, iteration.held_out});
  }
  return points;
}

Pace pace_through(const std::vector<Point>& points) {
  // The median of the slopes between any two points (Theil and Sen) ignores an iteration that was disturbed.
  std::vector<double> slopes, starts;
  for (const Point& a : points) {
    for (const Point& b : points) {
      const bool counts = !a.held_out && !b.held_out && b.together - a.together > kApart;
      if (counts) slopes.push_back((b.pace - a.pace) / (b.together - a.together));
    }
  }
  const double slope = slopes.empty() ? 0 : median(std::move(slopes));
  for (const Point& point : points) {
    if (!point.held_out) starts.push_back(point.pace - slope * point.together);
  }
  check(!starts.empty(), "a pace needs an iteration");
  const double start = median(std::move(starts));
  return {.alone = std::max(start, kSlowest), .together = std::max(start + slope, kSlowest)};
}

struct Trial {
  IterationFit fit;
  double usual_error = 0;  // the median, which one disturbed iteration does not change
};

Trial fit_with(const Profile& profile, double beside_pass) {
  const std::vector<Point> points = points_of(profile, beside_pass);
  const Pace pace = pace_through(points);
  std::vector<double> errors;
  for (const Point& point : points) errors.push_back(std::abs(pace.of(point.together) / point.pace - 1));
  const double mean = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  return {{.beside_pass = beside_pass, .pace = pace, .error = mean}, median(std::move(errors))};
}

// The mean pass of the iteration with the shortest passes: an upper bound on the time beside a pass.
double shortest_pass(const Profile& profile) {
  double shortest = 0;
  for (const MeasuredIteration& iteration : profile.iterations) {
    const auto passes = static_cast<double>(2 * iteration.micro_batches) * static_cast<double>(iteration.slices.size());
    const double mean = iteration.pipeline / passes;
    shortest = shortest == 0 ? mean : std::min(shortest, mean);
  }
  return shortest;
}

}  // namespace

double together_share(const pipeline::Simulation& simulation) {
  const auto stages = static_cast<double>(simulation.busy.size());
  if (stages == 1) return 1;
  return std::max(0.0, 1 - simulation.bubble_share() * stages / (stages - 1));
}

std::vector<pipeline::MicroBatchCut> alike(const Profile& profile, std::span<const std::int64_t> lengths) {
  return {{.sequences = profile.key.sequences, .slice_tokens = {lengths.begin(), lengths.end()}}};
}

pipeline::Costs paced_costs(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts, const CellWork& work) {
  pipeline::Costs costs = undisturbed(profile, schedule, cuts, work);
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

void add_to_passes(pipeline::Costs& costs, double milliseconds) {
  for (std::vector<pipeline::PassTimes>& cell : costs.passes) {
    for (pipeline::PassTimes& times : cell) {
      for (double* time : {&times.forward, &times.backward, &times.backward_input, &times.backward_weight,
                           &times.embedding, &times.head, &times.embedding_backward}) {
        *time += milliseconds;
      }
    }
  }
}

Pace pace_of(const Profile& profile) { return pace_through(points_of(profile, 0)); }

IterationFit fit_iterations(const Profile& profile) {
  if (std::ranges::all_of(profile.iterations, &MeasuredIteration::held_out)) return {.pace = profile.pace};
  const Trial without = fit_with(profile, 0);
  Trial best = without;
  const double most = shortest_pass(profile);
  for (int step = 1; step <= kSearchSteps; ++step) {
    const Trial trial = fit_with(profile, most * step / kSearchSteps);
    if (trial.usual_error < best.usual_error) best = trial;
  }
  return best.usual_error < kGain * without.usual_error ? best.fit : without.fit;
}

}  // namespace teratron::slicing
