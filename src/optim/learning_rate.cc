#include "optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace teratron {

double LearningRateSchedule::at(std::int64_t update) const {
  if (update < warmup) return peak * static_cast<double>(update) / static_cast<double>(warmup);
  if (style == DecayStyle::kConstant) return peak;
  if (update >= decay) return minimum;
  const double progress = static_cast<double>(update - warmup) / static_cast<double>(decay - warmup);
  const double remaining =
      style == DecayStyle::kLinear ? 1.0 - progress : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return minimum + (peak - minimum) * remaining;
}

}  // namespace teratron
