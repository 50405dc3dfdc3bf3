#include "pipeline/deferral.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "base/error.h"
#include "pipeline/checker.h"
#include "pipeline/memory.h"
#include "pipeline/timing/event_times.h"
#include "pipeline/v_schedules.h"

namespace teratron::pipeline {
namespace {

// The schedule without weight gradients: every backward becomes its input's part.
Schedule input_gradients_only(Schedule schedule) {
  for (std::vector<Action>& list : schedule.actions) {
    std::erase_if(list, [](const Action& action) { return action.pass == Pass::kBackwardWeight; });
    for (Action& action : list) {
      if (action.pass == Pass::kBackward) action.pass = Pass::kBackwardInput;
    }
  }
  return schedule;
}

// Runs the stages through a schedule in the order of simulated time, deferring weight gradients on the way.
class Deferral {
 public:
  Deferral(const Schedule& schedule, const Costs& costs, std::int64_t most_slices)
      : source_(input_gradients_only(schedule)), costs_(costs), most_slices_(most_slices), times_(source_, costs) {
    stages_.resize(schedule.actions.size());
    result_ = schedule;
    for (std::vector<Action>& list : result_.actions) list.clear();
  }

  Schedule run() {
    while (const std::optional<int> stage = earliest()) step(*stage);
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      check(stages_[stage].next == source_.actions[stage].size(), "a schedule fit to run comes to its end");
    }
    return std::move(result_);
  }

 private:
  struct Stage {
    std::size_t next = 0;         // in its list
    double clock = 0;             // end of its last action
    std::int64_t live = 0;        // slices
    std::deque<Action> deferred;  // weight gradients, oldest first
  };
  Stage& at(int stage) { return stages_[static_cast<std::size_t>(stage)]; }

  const Action& next_of(int stage) { return source_.actions[static_cast<std::size_t>(stage)][at(stage).next]; }
  bool has_next(int stage) { return at(stage).next < source_.actions[static_cast<std::size_t>(stage)].size(); }

  double arrival(int stage) { return has_next(stage) ? times_.arrival(stage, next_of(stage)) : EventTimes::kNotYet; }

  // Time at which the stage can run its next action, or a deferred one. What other stages do later cannot change which
  // results have arrived by then.
  double start(int stage) { return std::max(at(stage).clock, at(stage).deferred.empty() ? arrival(stage) : 0); }

  // The stage that can start first; none when all are done or wait forever.
  std::optional<int> earliest() {
    std::optional<int> best;
    double best_start = EventTimes::kNotYet;
    for (int stage = 0; stage < source_.stages; ++stage) {
      const double time = start(stage);
      if (time < best_start) {
        best = stage;
        best_start = time;
      }
    }
    return best;
  }

  void step(int stage) {
    Stage& state = at(stage);
    const bool waits = arrival(stage) > state.clock;
    const bool full = has_next(stage) && next_of(stage).pass == Pass::kForward && state.live == most_slices_;
    if ((waits || full) && !state.deferred.empty()) {
      perform(stage, state.deferred.front());
      state.deferred.pop_front();
      return;
    }
    check(!full, "the bound on live activations is at least what the schedule needs");
    const Action& action = next_of(stage);
    state.clock = std::max(state.clock, arrival(stage));
    perform(stage, action);
    ++state.next;
    if (action.pass == Pass::kBackwardInput) {
      state.deferred.push_back(action);
      state.deferred.back().pass = Pass::kBackwardWeight;
    }
  }

  void perform(int stage, const Action& action) {
    Stage& state = at(stage);
    state.clock += costs_.of(source_, stage, action);
    state.live += action.pass == Pass::kForward ? 1 : action.pass == Pass::kBackwardWeight ? -1 : 0;
    times_.happens(stage, action, state.clock);
    result_.actions[static_cast<std::size_t>(stage)].push_back(action);
  }

  const Schedule source_;
  const Costs& costs_;
  std::int64_t most_slices_;
  EventTimes times_;
  std::vector<Stage> stages_;
  Schedule result_;
};

}  // namespace

Schedule defer_weight_gradients(const Schedule& schedule, const Costs& costs, std::int64_t most_slices) {
  check_schedule(schedule, most_slices);
  return Deferral(schedule, costs, most_slices).run();
}

std::int64_t most_live_slices(const Schedule& schedule) {
  std::int64_t most = 0;
  for (const MemoryPeak& peak : memory_peaks(schedule)) most = std::max(most, peak.slices);
  return most;
}

std::int64_t deferral_bound(ScheduleKind kind, const Schedule& schedule) {
  const std::int64_t needed = most_live_slices(schedule);
  if (schedule.placement != Placement::kFolded) return needed;
  return std::max(needed, v_most_slices(kind, schedule.stages, schedule.slices));
}

}  // namespace teratron::pipeline
