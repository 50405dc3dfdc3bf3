#include "ops/algorithms/algorithm_choice.h"

#include <algorithm>

#include "base/error.h"

namespace teratron {
namespace {

constexpr int kRounds = 3;
constexpr double kWorthIt = 1.01;

Algorithm timed_choice(const std::string& key, AlgorithmTrial& trial, std::span<const AlgorithmBytes> candidates) {
  std::vector<std::optional<double>> least(candidates.size());
  // In turns, so that a clock that slows down as the device warms up does so for all.
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (round > 0 && !least[i]) continue;
      const std::optional<double> time = trial.time(candidates[i]);
      least[i] = time && least[i] ? std::min(*time, *least[i]) : time;
    }
  }
  const std::optional<std::size_t> best = fastest(least);
  if (!best) {
    throw_environment_error("none of the {} algorithms that the device's library has for a matrix product runs ({})",
                            candidates.size(), key);
  }
  return {.bytes = candidates[*best], .microseconds = *least[*best]};
}

}  // namespace

std::optional<std::size_t> fastest(std::span<const std::optional<double>> times) {
  std::optional<double> least;
  for (const std::optional<double>& time : times) {
    if (time && (!least || *time < *least)) least = time;
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] && *times[i] <= kWorthIt * *least) return i;
  }
  return std::nullopt;
}

AlgorithmBytes choose_algorithm(const std::string& key, AlgorithmTrial& trial, AlgorithmCache& cache) {
  const std::optional<Algorithm> kept = cache.find(key);
  if (kept && trial.can_use(kept->bytes)) return kept->bytes;
  // Ranks that get here at the same time all measure, and one of them decides. No rank waits for another, whose device
  // may be waiting for this one's.
  const std::vector<AlgorithmBytes> candidates = trial.candidates();
  check(!candidates.empty(), "a product has an algorithm");
  if (candidates.size() == 1) return candidates.front();  // for now: there may be no memory to time others in
  const Algorithm own = timed_choice(key, trial, candidates);
  const Algorithm settled = cache.settle(key, own, kept);
  return settled == own || trial.can_use(settled.bytes) ? settled.bytes : own.bytes;
}

}  // namespace teratron
