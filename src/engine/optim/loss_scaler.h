// Dynamic loss scaling for fp16 (Megatron-LM's rule): gradients are computed of the loss times a scale, which falls
// when they overflow and rises after a run of updates without.
#pragma once

#include <cstdint>

namespace teratron {

struct LossScaling {
  double fixed = 0;  // 0: dynamic
  double initial = 4294967296.0, minimum = 1;
  std::int64_t window = 1000;   // updates without overflow until the scale doubles
  std::int64_t hysteresis = 2;  // it halves from this overflow on, counted since it last doubled
};

class LossScaler {
 public:
  struct State {
    double scale;
    std::int64_t good_updates, overflows_left;
    bool operator==(const State&) const = default;
  };

  explicit LossScaler(const LossScaling& settings);

  double scale() const { return state_.scale; }
  void update(bool overflow);
  // Another overflow is a divergence: a dynamic scale cannot fall further, or every one of a fixed scale's last updates
  // has overflowed, kMostOverflows of them.
  static constexpr std::int64_t kMostOverflows = 50;
  bool exhausted() const {
    return settings_.fixed > 0 ? state_.overflows_left <= 0 : state_.scale <= settings_.minimum;
  }

  const State& state() const { return state_; }
  // Restores a dynamic scale; a fixed one is that of the settings. No more overflows are left than `hysteresis`, since
  // a scale that was fixed counts up to kMostOverflows.
  void restore(const State& state);

 private:
  LossScaling settings_;
  State state_;
};

}  // namespace teratron
