#include "optim/loss_scaler.h"

#include <algorithm>

namespace teratron {

LossScaler::LossScaler(const LossScaling& settings)
    : settings_(settings),
      state_{.scale = settings.fixed > 0 ? settings.fixed : settings.initial,
             .good_updates = 0,
             .overflows_left = settings.fixed > 0 ? kMostOverflows : settings.hysteresis} {}

void LossScaler::update(bool overflow) {
  if (settings_.fixed > 0) {
    state_.overflows_left = overflow ? state_.overflows_left - 1 : kMostOverflows;
    return;
  }
  if (overflow) {
    state_.good_updates = 0;
    if (--state_.overflows_left <= 0) state_.scale = std::max(state_.scale / 2, settings_.minimum);
    return;
  }
  if (++state_.good_updates < settings_.window) return;
  state_ = {.scale = state_.scale * 2, .good_updates = 0, .overflows_left = settings_.hysteresis};
}

void LossScaler::restore(const State& state) {
  if (settings_.fixed > 0) return;
  state_ = state;
  state_.overflows_left = std::min(state.overflows_left, settings_.hysteresis);
}

}  // namespace teratron
