#include "plan/training_cost.h"

#include <algorithm>
#include <cmath>

namespace teratron::plan {
namespace {

constexpr double kSecondsOfDay = 86400, kHoursOfDay = 24, kWattHoursOfMegawattHour = 1e6, kTokensOfParameter = 20;

}  // namespace

Training training_of(double tokens, const PlanRequest& request, const PlannedLayout& layout) {
  const std::int64_t sequence = layout.config.model.seq_length;
  const double updates =
      tokens / static_cast<double>(sequence) / static_cast<double>(layout.config.batch.global_batch_size);
  return {.tokens = tokens,
          .days = tokens / layout.time.tokens_per_second / kSecondsOfDay,
          .operations = tokens * layout.config.model.model_for(request.vocab_size).training_flops_per_token(sequence),
          .updates = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(updates)))};
}

double optimal_tokens(const PlanRequest& request) {
  return kTokensOfParameter * static_cast<double>(request.config.model.model_for(request.vocab_size).parameters());
}

Bill bill_of(double days, double price, const Cluster& cluster) {
  const double device_hours = days * kHoursOfDay * static_cast<double>(cluster.devices);
  return {.device_hours = device_hours,
          .dollars = device_hours * price,
          .megawatt_hours = device_hours * cluster.device.watts / kWattHoursOfMegawattHour};
}

double days_of_budget(double dollars, double price, const Cluster& cluster) {
  return dollars / (price * kHoursOfDay * static_cast<double>(cluster.devices));
}

double tokens_in(double days, const PlannedLayout& layout) {
  return days * kSecondsOfDay * layout.time.tokens_per_second;
}

}  // namespace teratron::plan
