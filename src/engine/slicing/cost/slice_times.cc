#include "slicing/cost/slice_times.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/median.h"
#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"
#include "slicing/slicer.h"

namespace teratron::slicing {
namespace {

using Lengths = std::vector<std::int64_t>;

// Steps of the grid that slices are cut on: as fine as keeps the slicers quick.
constexpr std::int64_t kSteps = 256, kPairSteps = 64;

constexpr double kApart = 0.1;     // by so much must the shares of two iterations differ to tell a slope
constexpr double kSlowest = 0.01;  // of a pace: never 0, however odd what was measured

// Of the grid, such that a slice's rows can be shared out where the ranks of a stage do that.
std::int64_t granularity_of(const Profile& profile, std::int64_t tokens, std::int64_t steps) {
  return slice_grid(tokens, profile.key.unit(), steps);
}

const StageCosts& stage_of(const Profile& profile, int stage, int stages) {
  const std::size_t measured = profile.stages.size();
  if (stages == 1) return profile.stages.front();
  const auto last = static_cast<std::size_t>(stages - 1);
  return profile.stages[(static_cast<std::size_t>(stage) * (measured - 1) + last / 2) / last];
}

// What a slice takes in the stage in which it takes longest. Sends and receives are a stage's work too.
CostTable slowest(const Profile& profile, std::int64_t tokens, std::int64_t granularity,
                  const std::function<double(const StageCosts&, std::int64_t, std::int64_t)>& cost) {
  return {tokens, granularity, [&](std::int64_t length, std::int64_t context) {
            double most = 0;
            for (const StageCosts& stage : profile.stages) most = std::max(most, cost(stage, length, context));
            return most + profile.transfer.of(length * profile.key.sequences);
          }};
}

CostTable both_passes(const Profile& profile, std::int64_t tokens, std::int64_t granularity) {
  return slowest(profile, tokens, granularity, [](const StageCosts& stage, std::int64_t length, std::int64_t context) {
    return stage.forward.milliseconds(length, context) + stage.backward.milliseconds(length, context);
  });
}

SlicerOptions options_for(const CostTable& both, int stages, int micro_batches) {
  return {.stages = stages, .micro_batches = micro_batches, .epsilon = 1e-4 * both.of(0, both.intervals())};
}

// What micro-batches of so many sequences take, in terms of two profiles.
struct ProfileMix {
  const Profile *low, *high;
  double of_low, of_high;

  double of(const std::function<double(const Profile&)>& time) const {
    return of_low * time(*low) + (of_high > 0 ? of_high * time(*high) : 0);
  }
  pipeline::PassTimes of_passes(const std::function<pipeline::PassTimes(const Profile&)>& times) const {
    const pipeline::PassTimes of_one = times(*low).times(of_low);
    return of_high > 0 ? of_one.plus(times(*high).times(of_high)) : of_one;
  }
};

ProfileMix mix_of(Profiles profiles, std::int64_t sequences) {
  const auto at = [](const Profile& profile) { return profile.key.sequences; };
  const auto wanted = static_cast<double>(sequences);
  const auto after = std::ranges::lower_bound(profiles, sequences, {}, at);
  if (after == profiles.begin() || after == profiles.end()) {
    const Profile& nearest = after == profiles.end() ? profiles.back() : profiles.front();
    return {&nearest, &nearest, wanted / static_cast<double>(at(nearest)), 0};
  }
  const Profile &high = *after, &low = *(after - 1);
  const double share = (wanted - static_cast<double>(at(low))) / static_cast<double>(at(high) - at(low));
  return {&low, &high, 1 - share, share};
}

// As the costs are measured, whatever other stages do meanwhile. One cut: of all micro-batches.
pipeline::Costs undisturbed(Profiles profiles, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts) {
  pipeline::Costs costs;
  costs.passes.resize(static_cast<std::size_t>(schedule.cells()));
  const double share = 1.0 / schedule.virtual_stages;
  for (std::size_t m = 0; m < cuts.size(); ++m) {
    const pipeline::MicroBatchCut& cut = cuts[m];
    check_equal(std::ssize(cut.slice_tokens), schedule.slices_of(static_cast<int>(m)), "slices of a known length");
    if (cuts.size() > 1) costs.first_columns.push_back(costs.transfers.size());
    const ProfileMix measured = mix_of(profiles, cut.sequences);
    std::int64_t context = 0;
    for (const std::int64_t length : cut.slice_tokens) {
      for (int cell = 0; cell < schedule.cells(); ++cell) {
        costs.passes[static_cast<std::size_t>(cell)].push_back(
            measured
                .of_passes([&](const Profile& profile) {
                  return stage_of(profile, schedule.stage_of(cell), schedule.stages).times(length, context);
                })
                .times(share));
      }
      costs.transfers.push_back(profiles.front().transfer.of(length * cut.sequences));
      context += length;
    }
  }
  return costs;
}

pipeline::Costs undisturbed(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const std::int64_t> lengths) {
  const pipeline::MicroBatchCut cut{.sequences = profile.key.sequences,
                                    .slice_tokens = {lengths.begin(), lengths.end()}};
  return undisturbed({&profile, 1}, schedule, {&cut, 1});
}

// 0 where one stage is at work at a time, 1 where all of them always are.
double together_share(const pipeline::Simulation& simulation) {
  const auto stages = static_cast<double>(simulation.busy.size());
  if (stages == 1) return 1;
  return std::max(0.0, 1 - simulation.bubble_share() * stages / (stages - 1));
}

// At the pace of this schedule.
pipeline::Costs disturbed(const Profile& profile, const pipeline::Schedule& schedule, pipeline::Costs costs) {
  const double pace = profile.pace.of(together_share(pipeline::simulate(schedule, costs)));
  for (std::vector<pipeline::PassTimes>& cell : costs.passes) {
    for (pipeline::PassTimes& slice : cell) slice = slice.times(pace);
  }
  for (double& transfer : costs.transfers) transfer *= pace;
  return costs;
}

// Finds the slicing that the simulation likes best.
class Search {
 public:
  Search(const Profile& profile, std::int64_t tokens, pipeline::ScheduleKind kind, int stages, int micro_batches)
      : profile_(profile),
        tokens_(tokens),
        kind_(kind),
        stages_(stages),
        // A steady state shows after as many micro-batches as there are stages; more of them only take longer.
        micro_batches_(std::min(micro_batches, 2 * stages)),
        step_(granularity_of(profile, tokens, kSteps)) {}

  Lengths best() {
    algorithm_1();
    if (kind_ == pipeline::ScheduleKind::kSeq1F1B) balanced_pairs();
    even();
    improve();
    return best_;
  }

  // Of those that best() has looked at.
  std::vector<Lengths> likely() {
    std::vector<Lengths> likely = {best()};
    const auto add = [&](const std::map<std::size_t, Tried>& by_count, std::size_t most) {
      std::vector<const Tried*> order;
      for (const auto& [count, tried] : by_count) order.push_back(&tried);
      std::ranges::stable_sort(order, {}, &Tried::milliseconds);
      for (const Tried* tried : order) {
        if (most == 0) return;
        if (std::ranges::find(likely, tried->lengths) != likely.end()) continue;
        likely.push_back(tried->lengths);
        --most;
      }
    };
    std::map<std::size_t, Tried> others = of_count_;
    others.erase(likely.front().size());
    add(others, kOthers);
    add(even_of_count_, kEven);
    return likely;
  }

 private:
  struct Tried {
    double milliseconds = std::numeric_limits<double>::infinity();
    Lengths lengths;
  };

  void algorithm_1() {
    const CostTable both = both_passes(profile_, tokens_, step_);
    for (int quarters = 1; quarters <= 16; quarters *= 2) {
      const int further = std::max(1, (stages_ - 1) * quarters / 4);
      consider(best_slicing(both, options_for(both, 1 + further, micro_batches_)).lengths);
    }
  }

  void balanced_pairs() {
    const std::int64_t coarse = granularity_of(profile_, tokens_, kPairSteps);
    const auto table = [&](CostModel StageCosts::*pass) {
      return slowest(profile_, tokens_, coarse,
                     [&](const StageCosts& stage, std::int64_t length, std::int64_t context) {
                       return (stage.*pass).milliseconds(length, context);
                     });
    };
    const CostTable both = both_passes(profile_, tokens_, coarse);
    consider(best_pair_slicing(table(&StageCosts::forward), table(&StageCosts::backward),
                               options_for(both, stages_, micro_batches_))
                 .lengths);
  }

  void even() {
    const std::int64_t steps = tokens_ / step_;
    for (std::int64_t count = 1; count <= std::min(steps, kPairSteps) && simulated_actions_ < kMostActions; ++count) {
      Lengths lengths = pipeline::even_slices(steps, static_cast<int>(count));
      for (std::int64_t& length : lengths) length *= step_;
      lengths.front() += tokens_ - steps * step_;
      even_of_count_[lengths.size()] = {time_of(lengths), lengths};
      consider(std::move(lengths));
    }
  }

  // Moves one boundary at a time, ever less far.
  void improve() {
    if (best_.empty()) return;
    for (std::int64_t far = 8 * step_; far >= step_; far /= 2) {
      for (bool better = true; better && simulated_actions_ < kMostActions;) {
        better = false;
        for (std::size_t i = 0; i + 1 < best_.size(); ++i) {
          for (const std::int64_t move : {far, -far}) {
            Lengths lengths = best_;
            lengths[i] += move;
            lengths[i + 1] -= move;
            if (lengths[i] > 0 && lengths[i + 1] > 0) better = consider(std::move(lengths)) || better;
          }
        }
      }
    }
  }

  double time_of(const Lengths& lengths) {
    const pipeline::Schedule schedule = pipeline::make_schedule(
        kind_, {.stages = stages_, .micro_batches = micro_batches_, .slices = static_cast<int>(lengths.size())});
    simulated_actions_ += 2 * static_cast<std::int64_t>(schedule.forwards_per_stage()) * stages_;
    return pipeline_milliseconds(profile_, schedule, lengths);
  }

  bool consider(Lengths lengths) {
    const double time = time_of(lengths);
    Tried& of_count = of_count_[lengths.size()];
    if (time < of_count.milliseconds) of_count = {time, lengths};
    if (time >= least_) return false;
    least_ = time;
    best_ = std::move(lengths);
    return true;
  }

  static constexpr std::int64_t kMostActions = 2'000'000;  // that even slices and improvements may take
  static constexpr std::size_t kOthers = 2, kEven = 2;     // of likely(), besides the best

  const Profile& profile_;
  const std::int64_t tokens_;
  const pipeline::ScheduleKind kind_;
  const int stages_, micro_batches_;
  const std::int64_t step_;
  std::map<std::size_t, Tried> of_count_, even_of_count_;  // the best, by the number of slices
  Lengths best_;
  double least_ = std::numeric_limits<double>::infinity();
  std::int64_t simulated_actions_ = 0;
};

}  // namespace

pipeline::Costs slice_costs(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const std::int64_t> lengths) {
  return disturbed(profile, schedule, undisturbed(profile, schedule, lengths));
}

pipeline::Costs slice_costs(Profiles profiles, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts) {
  return disturbed(profiles.front(), schedule, undisturbed(profiles, schedule, cuts));
}

double slice_milliseconds(Profiles profiles, std::size_t stage, std::int64_t sequences, std::int64_t length,
                          std::int64_t context) {
  return mix_of(profiles, sequences).of([&](const Profile& profile) {
    const StageCosts& costs = profile.stages[stage];
    return costs.forward.milliseconds(length, context) + costs.backward.milliseconds(length, context);
  });
}

double pipeline_milliseconds(Profiles profiles, const pipeline::Schedule& schedule,
                             std::span<const pipeline::MicroBatchCut> cuts) {
  const pipeline::Simulation simulation = pipeline::simulate(schedule, undisturbed(profiles, schedule, cuts));
  return simulation.iteration * profiles.front().pace.of(together_share(simulation));
}

double pipeline_milliseconds(const Profile& profile, const pipeline::Schedule& schedule,
                             std::span<const std::int64_t> lengths) {
  const pipeline::Simulation simulation = pipeline::simulate(schedule, undisturbed(profile, schedule, lengths));
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
  return pipeline_milliseconds(profile, schedule_of(iteration, stages), iteration.slices);
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
        pipeline::simulate(schedule, undisturbed(profile, schedule, iteration.slices));
    points.push_back({together_share(simulation), iteration.pipeline / simulation.iteration});
  }
  check(!points.empty(), "a pace is that of one iteration at least");
  // The median of the slopes between any two (Theil and Sen): an iteration that something disturbed does not matter.
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
                                             pipeline::ScheduleKind schedule, int stages, int micro_batches) {
  check(schedule == pipeline::ScheduleKind::kTeraPipe || schedule == pipeline::ScheduleKind::kSeq1F1B,
        "only terapipe and seq1f1b take slices");
  return Search(profile, tokens, schedule, stages, micro_batches).best();
}

std::vector<Lengths> likely_slicings(const Profile& profile, std::int64_t tokens, pipeline::ScheduleKind schedule,
                                     int stages, int micro_batches) {
  check(schedule == pipeline::ScheduleKind::kTeraPipe || schedule == pipeline::ScheduleKind::kSeq1F1B,
        "only terapipe and seq1f1b take slices");
  return Search(profile, tokens, schedule, stages, micro_batches).likely();
}

}  // namespace teratron::slicing
