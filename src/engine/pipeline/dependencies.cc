#include "pipeline/dependencies.h"

#include <deque>

namespace teratron::pipeline {
namespace {

// The stage of the cell `step` cells further on in the direction of the pass, if that is another stage's.
std::optional<int> neighbour(const Schedule& schedule, int stage, const Action& action, int step) {
  if (action.pass == Pass::kBackwardWeight || is_joint(action.pass)) return std::nullopt;
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
  const auto next = [&](int stage) -> std::size_t& { return progress[static_cast<std::size_t>(stage)]; };
  const auto list = [&](int stage) -> const std::vector<Action>& {
    return schedule.actions[static_cast<std::size_t>(stage)];
  };
  const auto is_ready = [&](int stage) {
    bool ready = !may_start || may_start(stage, next(stage), progress);
    for_each_need(schedule, stage, list(stage)[next(stage)],
                  [&](const Event& event) { ready = ready && happened[number_of(schedule, event)] != 0; });
    return ready;
  };
  const auto is_ready_at = [&](int stage, const Action& joint) {
    return next(stage) < list(stage).size() && list(stage)[next(stage)] == joint && is_ready(stage);
  };
  const auto perform = [&](int stage) {
    visit(stage, next(stage));
    for_each_result(schedule, stage, list(stage)[next(stage)++],
                    [&](const Event& event) { happened[number_of(schedule, event)] = 1; });
  };
  std::deque<int> to_try;
  const auto try_all = [&] {
    for (int stage = 0; stage < schedule.stages; ++stage) to_try.push_back(stage);
  };
  try_all();
  while (!to_try.empty()) {
    const int stage = to_try.front();
    to_try.pop_front();
    const std::size_t before = next(stage);
    while (next(stage) < list(stage).size()) {
      const Action action = list(stage)[next(stage)];
      if (!is_joint(action.pass)) {
        if (!is_ready(stage)) break;
        perform(stage);
        continue;
      }
      bool all_ready = true;
      for (int other = 0; other < schedule.stages; ++other) all_ready = all_ready && is_ready_at(other, action);
      if (!all_ready) break;
      for (int other = 0; other < schedule.stages; ++other) perform(other);
      try_all();
    }
    if (next(stage) == before) continue;
    // Only the stages that hold the cells next to ours can have been waiting for us.
    to_try.push_back((stage + 1) % schedule.stages);
    to_try.push_back((stage + schedule.stages - 1) % schedule.stages);
  }
  return progress;
}

}  // namespace teratron::pipeline
