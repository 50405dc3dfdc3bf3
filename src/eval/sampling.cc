#include "eval/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"

namespace teratron {

Faults SamplingSettings::faults() const {
  Faults faults;
  faults.add_if(!(temperature >= 0), "{} is {}; 0 is greedy, the least", Flag{"temperature"}, temperature);
  faults.add_if(top_k < 0, "{} is {}; 0 is off, the least", Flag{"top-k"}, top_k);
  faults.add_if(!(top_p > 0 && top_p <= 1), "{} is {}; it must be above 0, at most 1", Flag{"top-p"}, top_p);
  return faults;
}

std::int32_t sample_token(std::span<const float> logits, const SamplingSettings& settings, std::int64_t position) {
  check(!logits.empty(), "logits to sample from");
  const auto best = std::max_element(logits.begin(), logits.end());
  if (!std::isfinite(*best)) throw_user_error("the model's logits are not finite: its weights are damaged or diverged");
  if (settings.temperature == 0) return static_cast<std::int32_t>(best - logits.begin());

  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;  // ties by id, so that the cut is always the same
  };
  auto kept = order.size();
  if (settings.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(settings.top_k));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), likelier);

  std::vector<double> probability(kept);
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const double distance =
        static_cast<double>(logits[static_cast<std::size_t>(order[i])]) - static_cast<double>(*best);
    total += probability[i] = std::exp(distance / settings.temperature);
  }
  double mass = 0;
  std::size_t nucleus = 0;
  while (nucleus < kept && (nucleus == 0 || mass < settings.top_p * total)) mass += probability[nucleus++];

  RandomSequence random({.seed = settings.seed, .purpose = RandomPurpose::kSampling},
                        static_cast<std::uint64_t>(position));
  double left = random.uniform() * mass;
  for (std::size_t i = 0; i < nucleus; ++i) {
    left -= probability[i];
    if (left < 0) return order[i];
  }
  return order[nucleus - 1];  // rounding may leave a crumb
}

}  // namespace teratron
