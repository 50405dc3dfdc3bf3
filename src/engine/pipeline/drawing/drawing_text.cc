#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pipeline/drawing/drawing.h"

namespace teratron::pipeline {
namespace {

// Numbers of each micro-batch's first slice, counted through all micro-batches.
std::vector<int> first_numbers(const Schedule& schedule) {
  std::vector<int> numbers = {0};
  for (int m = 0; m + 1 < schedule.micro_batches; ++m) numbers.push_back(numbers.back() + schedule.slices_of(m));
  return numbers;
}

char letter_of(const std::vector<int>& first_numbers, const Action& action) {
  const int number = first_numbers[static_cast<std::size_t>(action.micro_batch)] + action.slice;
  switch (action.pass) {
    case Pass::kForward: return static_cast<char>('0' + number % 10);
    case Pass::kBackward:
    case Pass::kBackwardInput: return static_cast<char>('a' + number % 26);
    case Pass::kBackwardWeight: return '+';
    case Pass::kEmbedding:
    case Pass::kHead:
    case Pass::kEmbeddingBackward: return '#';
  }
  return '?';
}

double shortest_action(const Simulation& simulation) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto& list : simulation.actions) {
    for (const TimedAction& timed : list) {
      if (timed.end > timed.start) shortest = std::min(shortest, timed.end - timed.start);
    }
  }
  return shortest;
}

}  // namespace

std::string to_text(const Schedule& schedule, const Simulation& simulation, int columns) {
  const auto prefix = static_cast<double>(fmt::format("stage {} ", schedule.stages - 1).size());
  const double shortest = shortest_action(simulation);
  if (!(simulation.iteration > 0) || simulation.iteration / shortest > columns - prefix) return "";
  // A whole number of columns for the shortest action, so that actions of its length are drawn alike.
  const double most = std::floor((columns - prefix) * shortest / simulation.iteration);
  const double scale = std::clamp(most, 1.0, 4.0) / shortest;
  const auto column = [&](double time) { return static_cast<std::size_t>(std::llround(time * scale)); };
  const std::vector<int> numbers = first_numbers(schedule);
  std::string text;
  for (std::size_t stage = 0; stage < simulation.actions.size(); ++stage) {
    std::string line(column(simulation.iteration), '.');
    for (const TimedAction& timed : simulation.actions[stage]) {
      const std::size_t begin = column(timed.start), end = std::min(column(timed.end), line.size());
      std::fill(line.begin() + static_cast<std::ptrdiff_t>(begin), line.begin() + static_cast<std::ptrdiff_t>(end),
                letter_of(numbers, timed.action));
    }
    text += fmt::format("stage {:<{}} {}\n", stage, static_cast<int>(prefix) - 7, line);
  }
  const char* const what = schedule.slices > 1 ? "slice (of all micro-batches)" : "micro-batch";
  return text + fmt::format("digits: forward of a {}; letters: its backward; +: a weight gradient; {}.: waiting\n",
                            what, schedule.vocabulary_parallel ? "#: the vocabulary; " : "");
}

}  // namespace teratron::pipeline
