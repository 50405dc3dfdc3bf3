// Cost of a whole training with a planned layout: updates, days, dollars and energy.
#pragma once

#include <cstdint>

#include "plan/search/layout_search.h"

namespace teratron::plan {

// A training on so many tokens.
struct Training {
  double tokens = 0, days = 0, operations = 0;
  std::int64_t updates = 0;  // that read so many tokens, rounded up
};
Training training_of(double tokens, const PlanRequest& request, const PlannedLayout& layout);

// Tokens of compute-optimal training (Hoffmann et al., arXiv 2203.15556): 20 for each parameter.
double optimal_tokens(const PlanRequest& request);

// Rent of all devices, and their energy at full load without hosts, networks and cooling.
struct Bill {
  double device_hours = 0;
  double dollars = 0, megawatt_hours = 0;  // 0: the price or the device's power is not known
};
// `price`: dollars of a device and hour.
Bill bill_of(double days, double price, const Cluster& cluster);
// Days of all devices that so many dollars pay for.
double days_of_budget(double dollars, double price, const Cluster& cluster);

double tokens_in(double days, const PlannedLayout& layout);

}  // namespace teratron::plan
