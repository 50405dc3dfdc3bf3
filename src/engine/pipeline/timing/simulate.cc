#include "pipeline/timing/simulate.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "pipeline/timing/event_times.h"

namespace teratron::pipeline {

double Simulation::bubble_share() const {
  if (iteration <= 0) return 0;
  const double work = std::accumulate(busy.begin(), busy.end(), 0.0);
  return std::max(0.0, 1 - work / (iteration * static_cast<double>(busy.size())));  // sums round
}

Simulation simulate(const Schedule& schedule, const Costs& costs) {
  Simulation result;
  result.actions.resize(schedule.actions.size());
  result.busy.assign(schedule.actions.size(), 0);
  EventTimes times(schedule, costs);
  double together = 0;  // when the last stage reaches the current joint pass
  // The order of visits respects every need, so the times of an action's needs are known when it is visited.
  const std::vector<std::size_t> progress = play(schedule, [&](int stage, std::size_t index) {
    const auto at = static_cast<std::size_t>(stage);
    const Action& action = schedule.actions[at][index];
    const auto free = [&](std::size_t one) { return result.actions[one].empty() ? 0 : result.actions[one].back().end; };
    double start = free(at);
    if (is_joint(action.pass)) {
      for (std::size_t one = 0; stage == 0 && one < result.actions.size(); ++one) {
        together = one == 0 ? free(one) : std::max(together, free(one));
      }
      start = together;
    }
    start = std::max(start, times.arrival(stage, action));
    const double time = costs.of(schedule, stage, action), end = start + time;
    times.happens(stage, action, end);
    result.actions[at].push_back({action, start, end});
    result.busy[at] += time;
    result.iteration = std::max(result.iteration, end);
  });
  for (std::size_t stage = 0; stage < progress.size(); ++stage) {
    check_equal(progress[stage], schedule.actions[stage].size(), "actions that a stage comes to");
  }
  return result;
}

}  // namespace teratron::pipeline
