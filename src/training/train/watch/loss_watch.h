// Watches of a run's losses: one that explodes, and the best validation.
#pragma once

#include <cstdint>
#include <optional>

namespace teratron {

// Notices a loss that explodes: far above the lowest level of this run. The run then only warns; whether it ends
// depends on values that are not finite.
class LossWatch {
 public:
  // Takes the loss of an update in nats. True when an explosion begins: once until the loss has come down again.
  bool explodes(double loss);

  double lowest() const { return lowest_; }

  // Levels, from which a resumed run goes on; nothing before the first loss.
  struct State {
    double level = 0, lowest = 0;
  };
  std::optional<State> state() const {
    return level_ ? std::optional(State{.level = *level_, .lowest = lowest_}) : std::nullopt;
  }
  void restore(const State& state) {
    level_ = state.level;
    lowest_ = state.lowest;
  }

 private:
  // More than half above the lowest level, and more than a nat, is beyond what batches differ by.
  bool is_far_up(double loss) const { return loss > lowest_ + (lowest_ > 2 ? lowest_ / 2 : 1); }

  std::optional<double> level_;  // a running mean
  double lowest_ = 0;            // of the level
  bool exploded_ = false;
};

// The lowest validation loss, or minus the highest score of a task; of the runs that this one goes on from, too.
struct BestValidation {
  std::optional<double> value;
  std::int64_t iteration = -1;  // when that was; -1: never, or it is not known
  std::int64_t since = 0;       // regular validations after it

  void add(double validation, std::int64_t at, bool is_regular = true) {
    if (is_regular) ++since;
    if (!value || validation < *value) *this = {.value = validation, .iteration = at};
  }
};

}  // namespace teratron
