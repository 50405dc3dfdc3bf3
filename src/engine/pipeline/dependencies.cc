#include "pipeline/dependencies.h"

#include <deque>

namespace teratron::pipeline {
namespace {

// The stage of the cell `step` cells further on in the direction of the pass, if that is another stage's.
std::optional<int> neighbour(const Schedule& schedule, int stage, const Action& action, int step) {
  if (action.pass == Pass::kBackwardWeight) return std::nullopt;
  const int cell = schedule.cell(stage, action) + (action.pass == Pass::kForward ? step : -step);
  if (cell < 0 || cell >= schedule.cells() || schedule.stage_of(cell) == stage) return std::nullopt;
  return schedule.stage_of(cell);
}

}  // namespace

std::optional<int> receives_from(const Schedule& schedule, int stage, const Action& action) {
  return neighbour(schedule, stage, action, -1);
}

std::optional<int> sends_to(const Schedule& schedule, int stage, const Action& action) {
  return neighbour(schedule, stage, action, 1);
}

Progress play(const Schedule& schedule, const std::function<void(int, std::size_t)>& visit,
              const std::function<bool(int, std::size_t, const Progress&)>& may_start) {
  std::vector<char> happened(events(schedule), 0);
  Progress progress(schedule.actions.size(), 0);
  std::deque<int> to_try;
  for (int stage = 0; stage < schedule.stages; ++stage) to_try.push_back(stage);
  while (!to_try.empty()) {
    const int stage = to_try.front();
    to_try.pop_front();
    const std::vector<Action>& list = schedule.actions[static_cast<std::size_t>(stage)];
    std::size_t& next = progress[static_cast<std::size_t>(stage)];
    const std::size_t before = next;
    for (; next < list.size(); ++next) {
      bool ready = !may_start || may_start(stage, next, progress);
      for_each_need(schedule, stage, list[next],
                    [&](const Event& event) { ready = ready && happened[number_of(schedule, event)] != 0; });
      if (!ready) break;
      visit(stage, next);
      for_each_result(schedule, stage, list[next],
                      [&](const Event& event) { happened[number_of(schedule, event)] = 1; });
    }
    if (next == before) continue;
    // Only the stages that hold the cells next to ours can have been waiting for us.
    to_try.push_back((stage + 1) % schedule.stages);
    to_try.push_back((stage + schedule.stages - 1) % schedule.stages);
  }
  return progress;
}

}  // namespace teratron::pipeline
