#include "plan/step_columns.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace teratron::plan {
namespace {

using pipeline::Pass;
using pipeline::TimedAction;

constexpr double kMilliseconds = 1e-3;

char letter_of(const pipeline::Action& action) {
  char letter = 'H';
  switch (action.pass) {
    case Pass::kForward: letter = 'F'; break;
    case Pass::kBackward:
    case Pass::kBackwardInput: letter = 'B'; break;
    case Pass::kBackwardWeight: letter = 'W'; break;
    case Pass::kEmbedding:
    case Pass::kHead:
    case Pass::kEmbeddingBackward: break;
  }
  return action.micro_batch % 2 == 0 ? letter : static_cast<char>(std::tolower(letter));
}

// Windows in which each column is no longer than half of the shortest pass, where two of them are less than the whole.
// The first reaches until the last stage has begun, at least.
std::vector<TimeWindow> windows_of(const simulation::PipelineResult& result, int columns) {
  double shortest = std::numeric_limits<double>::infinity(), filled = 0;
  for (const std::vector<TimedAction>& actions : result.timeline.actions) {
    if (!actions.empty()) filled = std::max(filled, actions.front().start);
    for (const TimedAction& action : actions) {
      if (action.end > action.start) shortest = std::min(shortest, action.end - action.start);
    }
  }
  const int half = columns / 2;
  const double span = std::max(half * shortest / 2, 1.5 * filled) * kMilliseconds;
  if (2 * span >= result.seconds) return {{0, result.seconds}};
  return {{0, span}, {result.seconds - span, result.seconds}};
}

// Letter of each column: the stage's pass in the middle of it.
void add_columns(const std::vector<TimedAction>& actions, const TimeWindow& window, int columns,
                 const simulation::PipelineResult& result, std::string& row) {
  std::size_t at = 0;
  for (int column = 0; column < columns; ++column) {
    const double seconds = window.begin + (window.end - window.begin) * (column + 0.5) / columns;
    while (at < actions.size() && actions[at].end * kMilliseconds <= seconds) ++at;
    if (at < actions.size() && actions[at].start * kMilliseconds <= seconds) {
      row += letter_of(actions[at].action);
    } else {
      row += seconds >= result.pipeline_seconds ? 'S' : '-';
    }
  }
}

}  // namespace

StepColumns columns_of(const simulation::PipelineResult& result, int columns, int most_stages) {
  StepColumns drawn{.windows = windows_of(result, columns), .stages = {}, .rows = {}};
  const auto stages = static_cast<int>(result.timeline.actions.size()), rows = std::min(stages, most_stages);
  const int of_window = columns / static_cast<int>(drawn.windows.size());
  for (int i = 0; i < rows; ++i) {
    const int stage = rows == 1 ? 0 : i * (stages - 1) / (rows - 1);
    std::string row;
    for (const TimeWindow& window : drawn.windows) {
      add_columns(result.timeline.actions[static_cast<std::size_t>(stage)], window, of_window, result, row);
    }
    drawn.stages.push_back(stage);
    drawn.rows.push_back(std::move(row));
  }
  return drawn;
}

}  // namespace teratron::plan
