#include "optim/learning_rate.h"

#include <cmath>
#include <numbers>

namespace teratron {
namespace {

double remaining_of_cosine(double progress) { return 0.5 * (1.0 + std::cos(std::numbers::pi * progress)); }

double remaining_of_wsd(WsdDecayStyle style, double progress) {
  switch (style) {
    case WsdDecayStyle::kLinear: return 1.0 - progress;
    case WsdDecayStyle::kCosine: return remaining_of_cosine(progress);
    case WsdDecayStyle::kExponential: return std::exp2(1.0 - progress) - 1.0;
    case WsdDecayStyle::kMinusSqrt: return 1.0 - std::sqrt(progress);
  }
  return 0;
}

double remaining_of(const LearningRateSchedule& schedule, double progress) {
  if (schedule.style == DecayStyle::kWsd) return remaining_of_wsd(schedule.wsd_style, progress);
  return schedule.style == DecayStyle::kLinear ? 1.0 - progress : remaining_of_cosine(progress);
}

}  // namespace

double LearningRateSchedule::at(std::int64_t update) const {
  if (update < warmup) return peak * static_cast<double>(update) / static_cast<double>(warmup);
  if (style == DecayStyle::kConstant || (update == warmup && warmup > 0)) return peak;
  if (update >= decay) return minimum;
  const std::int64_t begin = fall_begins();
  if (update <= begin) return peak;
  const double progress = static_cast<double>(update - begin) / static_cast<double>(decay - begin);
  return minimum + (peak - minimum) * remaining_of(*this, progress);
}

}  // namespace teratron
