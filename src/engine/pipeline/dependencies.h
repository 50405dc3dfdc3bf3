// Dependencies of actions. No other file has rules for how data flows through a pipeline.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

// Results of actions. A whole backward yields both gradients.
enum class Outcome { kOutput, kInputGradient, kWeightGradient, kEmbedded, kLossGradient, kTableGradient };
constexpr std::size_t kOutcomes = 6;
// Whether other stages may need it.
constexpr bool is_sent(Outcome outcome) { return outcome == Outcome::kOutput || outcome == Outcome::kInputGradient; }

struct Event {
  Outcome outcome = Outcome::kOutput;
  int cell = 0, micro_batch = 0, slice = 0;
  bool operator==(const Event&) const = default;
};

// A number for each event of a schedule, from 0 to events(schedule) - 1.
inline std::size_t events(const Schedule& schedule) {
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  return kOutcomes * size(schedule.cells()) * size(schedule.micro_batches) * size(schedule.slices);
}
inline std::size_t number_of(const Schedule& schedule, const Event& event) {
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  const std::size_t cell = size(static_cast<int>(event.outcome)) * size(schedule.cells()) + size(event.cell);
  return (cell * size(schedule.micro_batches) + size(event.micro_batch)) * size(schedule.slices) + size(event.slice);
}

// Calls use(Event) for all that `action` of `stage` brings about.
template <class Use>
void for_each_result(const Schedule& schedule, int stage, const Action& action, const Use& use) {
  const auto event = [&](Outcome outcome) {
    use(Event{outcome, schedule.cell(stage, action), action.micro_batch, action.slice});
  };
  if (action.pass == Pass::kForward) event(Outcome::kOutput);
  if (makes_input_gradient(action.pass)) event(Outcome::kInputGradient);
  if (makes_weight_gradient(action.pass)) event(Outcome::kWeightGradient);
  if (action.pass == Pass::kEmbedding) event(Outcome::kEmbedded);
  if (action.pass == Pass::kHead) event(Outcome::kLossGradient);
  if (action.pass == Pass::kEmbeddingBackward) event(Outcome::kTableGradient);
}

// Calls use(Event) for all that must have happened before `action` of `stage`. Events of other stages reach it by a
// transfer; those of its own stage it finds in its memory. A joint pass waits for all stages besides (play()), so the
// stage of the model's end alone needs what it works on.
template <class Use>
void for_each_need(const Schedule& schedule, int stage, const Action& action, const Use& use) {
  const int cell = schedule.cell(stage, action), m = action.micro_batch, s = action.slice;
  switch (action.pass) {
    case Pass::kForward:
      if (s > 0) use(Event{Outcome::kOutput, cell, m, s - 1});  // its keys and values
      if (cell > 0) use(Event{Outcome::kOutput, cell - 1, m, s});
      if (cell == 0 && schedule.vocabulary_parallel) use(Event{Outcome::kEmbedded, cell, m, s});
      return;
    case Pass::kBackward:
    case Pass::kBackwardInput:
      use(Event{Outcome::kOutput, cell, m, s});
      if (s + 1 < schedule.slices_of(m))
        use(Event{Outcome::kInputGradient, cell, m, s + 1});  // its part in our keys' gradient
      if (cell + 1 < schedule.cells()) use(Event{Outcome::kInputGradient, cell + 1, m, s});
      if (cell + 1 == schedule.cells() && schedule.vocabulary_parallel) use(Event{Outcome::kLossGradient, cell, m, s});
      return;
    case Pass::kBackwardWeight: use(Event{Outcome::kInputGradient, cell, m, s}); return;
    case Pass::kEmbedding: return;
    case Pass::kHead:
      if (cell + 1 == schedule.cells()) use(Event{Outcome::kOutput, cell, m, s});
      return;
    case Pass::kEmbeddingBackward:
      if (cell == 0) use(Event{Outcome::kInputGradient, cell, m, s});
      return;
  }
}

// The stage that sends what `action` of `stage` works on: the activations of a forward, the gradient of a backward.
// None where there is nothing to receive: at the model's ends, for weight gradients, and where the stage holds that
// cell too.
std::optional<int> receives_from(const Schedule& schedule, int stage, const Action& action);

// Stage that waits for the result of `action` of `stage`; none if no other stage does.
std::optional<int> sends_to(const Schedule& schedule, int stage, const Action& action);

// Lets the stages work through their lists, each action as soon as all it needs has happened, and calls
// visit(stage, index in the list) in an order that respects every need. A joint pass is visited on all stages one after
// the other, from the first on, once each has come to it. Returns how far each stage came: not to its
// list's end where the stages wait for one another. Actions must be of the schedule's size.
// `may_start(stage, index, progress)`, where given, says whether the stages that an action exchanges results with have
// come far enough for it besides.
using Progress = std::vector<std::size_t>;
Progress play(const Schedule& schedule, const std::function<void(int, std::size_t)>& visit,
              const std::function<bool(int, std::size_t, const Progress&)>& may_start = {});

}  // namespace teratron::pipeline
