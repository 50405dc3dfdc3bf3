// The simulation against closed forms, and against longest paths through the graph of what waits for what.
#include "pipeline/timing/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "pipeline/random_schedule.h"
#include "pipeline/timing/closed_form.h"

namespace teratron::testing {
namespace {

using namespace pipeline;

// Sums of a few hundred terms of order 1 to 10, in another order.
constexpr double kRounding = 1e-9;

TEST(Simulation, WithStagesAndSlicesAlikeTheBubbleIsTheClosedForm) {
  RandomSequence random(RandomStream{.seed = 1});
  for (const ScheduleKind kind : kAllKinds) {
    for (int trial = 0; trial < 60; ++trial) {
      ScheduleSize size = random_size(random, kind);
      // 1F1B's forms are of pipelines that fill: a backward is longer than a forward, as it is.
      const double forward = 1 + random.uniform(), backward = forward * (1 + random.uniform());
      const Schedule schedule = make_schedule(kind, size);
      const Simulation simulation = simulate(schedule, even_costs(schedule, forward, backward));
      const double bubble = simulation.iteration - size.micro_batches * (forward + backward);
      const std::optional<ClosedForm> form = closed_form(kind, size, forward, backward);
      if (!form) break;
      ASSERT_NEAR(bubble, form->bubble, kRounding) << name_of(kind) << " " << size.stages << " " << size.micro_batches
                                                   << " " << size.slices << " " << size.virtual_stages;
      ASSERT_NEAR(simulation.bubble_share(), bubble / simulation.iteration, kRounding);
    }
  }
}

TEST(Simulation, TeraPipeTakesTheSumOfItsSlicesAndTheLongestOnceForEveryFurtherStage) {
  // Section 3.2 of the paper, T = sum t_i + (K - 1) max t_j, forward and backward alike.
  RandomSequence random(RandomStream{.seed = 2});
  for (int trial = 0; trial < 100; ++trial) {
    const ScheduleSize size = random_size(random, ScheduleKind::kTeraPipe);
    const Schedule schedule = make_schedule(ScheduleKind::kTeraPipe, size);
    std::vector<PassTimes> slices;
    double forward = 0, backward = 0, longest_forward = 0, longest_backward = 0;
    for (int s = 0; s < size.slices; ++s) {
      slices.push_back(PassTimes::even_parts(random.uniform(), random.uniform()));
      forward += slices.back().forward;
      backward += slices.back().backward;
      longest_forward = std::max(longest_forward, slices.back().forward);
      longest_backward = std::max(longest_backward, slices.back().backward);
    }
    const Simulation simulation = simulate(schedule, sliced_costs(schedule, slices));
    double forward_end = 0;
    for (const TimedAction& timed : simulation.actions.back()) {
      if (timed.action.pass == Pass::kForward) forward_end = timed.end;
    }
    ASSERT_NEAR(forward_end, size.micro_batches * forward + (size.stages - 1) * longest_forward, kRounding);
    ASSERT_NEAR(simulation.iteration,
                size.micro_batches * (forward + backward) + (size.stages - 1) * (longest_forward + longest_backward),
                kRounding);
  }
}

// An independent account of the same: when an action ends is its time after the latest of all that must end before it,
// where these are written down from the equations of sliced attention, without a word of pipeline/dependencies.h.
class LongestPath {
 public:
  LongestPath(const Schedule& schedule, const Costs& costs) : schedule_(schedule), costs_(costs) {
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const std::vector<Action>& list = schedule.actions[static_cast<std::size_t>(stage)];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Action& a = list[i];
        places_[{static_cast<int>(a.pass), stage, a.micro_batch, a.slice, a.chunk}] = i;
      }
    }
  }

  double end(int stage, std::size_t place) {
    const auto known = ends_.find({stage, place});
    if (known != ends_.end()) return known->second;
    const Action& a = schedule_.actions[static_cast<std::size_t>(stage)][place];
    double start = place > 0 ? end(stage, place - 1) : 0;
    const int K = schedule_.stages;
    // A row of K cells goes down the stages, the next one down again or, in a V, up.
    const auto cell_at = [&](int in_stage, int chunk) {
      const bool goes_up = schedule_.placement == Placement::kFolded && chunk % 2 == 1;
      return chunk * K + (goes_up ? K - 1 - in_stage : in_stage);
    };
    const int cell = cell_at(stage, a.chunk);
    const auto for_cell = [&](int wanted, const auto& use) {
      for (int chunk = 0; chunk < schedule_.virtual_stages; ++chunk) {
        for (int from = 0; from < K; ++from) {
          if (cell_at(from, chunk) == wanted) use(from, chunk);
        }
      }
    };
    const auto after = [&](Pass pass, int from, int slice, int chunk) {
      const double transfer = from == stage ? 0 : costs_.transfers[static_cast<std::size_t>(slice)];
      const auto found = places_.find({static_cast<int>(pass), from, a.micro_batch, slice, chunk});
      if (found == places_.end()) return;
      start = std::max(start, end(from, found->second) + transfer);
    };
    const auto after_gradient = [&](int from, int slice, int chunk) {  // one of the two is there
      after(Pass::kBackward, from, slice, chunk);
      after(Pass::kBackwardInput, from, slice, chunk);
    };
    if (a.pass == Pass::kForward) {
      for (int slice = 0; slice < a.slice; ++slice) after(Pass::kForward, stage, slice, a.chunk);
      for_cell(cell - 1, [&](int from, int chunk) { after(Pass::kForward, from, a.slice, chunk); });
    } else if (a.pass == Pass::kBackwardWeight) {
      after(Pass::kBackwardInput, stage, a.slice, a.chunk);
    } else {
      after(Pass::kForward, stage, a.slice, a.chunk);
      for (int slice = a.slice + 1; slice < schedule_.slices; ++slice) after_gradient(stage, slice, a.chunk);
      for_cell(cell + 1, [&](int from, int chunk) { after_gradient(from, a.slice, chunk); });
    }
    const PassTimes& times = costs_.passes[static_cast<std::size_t>(cell)][static_cast<std::size_t>(a.slice)];
    const double time = a.pass == Pass::kForward         ? times.forward
                        : a.pass == Pass::kBackward      ? times.backward
                        : a.pass == Pass::kBackwardInput ? times.backward_input
                                                         : times.backward_weight;
    return ends_[{stage, place}] = start + time;
  }

 private:
  const Schedule& schedule_;
  const Costs& costs_;
  std::map<std::tuple<int, int, int, int, int>, std::size_t> places_;
  std::map<std::pair<int, std::size_t>, double> ends_;
};

Costs with_transfers(const Schedule& schedule, RandomSequence& random) {
  Costs costs = random_costs(schedule, random);
  for (int s = 0; s < schedule.slices; ++s) costs.transfers.push_back(random.below(2) == 0 ? 0 : random.uniform());
  return costs;
}

TEST(Simulation, EveryActionEndsAtItsLongestPathWhateverItCosts) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 200; ++trial) {
    const Schedule schedule = any_schedule(random);
    const Costs costs = with_transfers(schedule, random);
    const Simulation simulation = simulate(schedule, costs);
    LongestPath path(schedule, costs);
    double latest = 0;
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const auto& timed = simulation.actions[static_cast<std::size_t>(stage)];
      ASSERT_EQ(timed.size(), schedule.actions[static_cast<std::size_t>(stage)].size());
      double busy = 0;
      for (std::size_t i = 0; i < timed.size(); ++i) {
        ASSERT_EQ(timed[i].action, schedule.actions[static_cast<std::size_t>(stage)][i]);
        ASSERT_NEAR(timed[i].end, path.end(stage, i), kRounding);
        ASSERT_GE(timed[i].start, i > 0 ? timed[i - 1].end : 0);
        busy += timed[i].end - timed[i].start;
        latest = std::max(latest, timed[i].end);
      }
      ASSERT_NEAR(simulation.busy[static_cast<std::size_t>(stage)], busy, kRounding);
    }
    ASSERT_EQ(simulation.iteration, latest);
  }
}

TEST(Simulation, AScheduleThatComesToNoEndIsOurBug) {
  Schedule schedule = make_schedule(ScheduleKind::kGpipe, {.stages = 2});
  std::swap(schedule.actions[0][0], schedule.actions[0][1]);
  EXPECT_THROW(simulate(schedule, even_costs(schedule, 1, 2)), InternalError);
}

}  // namespace
}  // namespace teratron::testing
