#include "pipeline/memory.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace teratron::pipeline {

namespace {

// Peaks in units of `tokens` tokens. Tokens are added up as integers and divided at the end, so that whole
// micro-batches give whole numbers.
template <class TokensOf>
std::vector<MemoryPeak> peaks_of(const Schedule& schedule, const TokensOf& tokens_of, std::int64_t tokens) {
  const double whole = static_cast<double>(tokens) * schedule.virtual_stages;
  std::vector<MemoryPeak> peaks;
  for (const std::vector<Action>& list : schedule.actions) {
    MemoryPeak peak;
    std::int64_t slices = 0, deferred = 0, alive = 0, most_alive = 0;
    for (const Action& action : list) {
      const std::int64_t size = tokens_of(action);
      if (action.pass == Pass::kForward) {
        ++slices;
        alive += size;
      } else if (action.pass == Pass::kBackwardInput) {
        ++deferred;
      } else if (makes_weight_gradient(action.pass)) {
        --slices;
        alive -= size;
        if (action.pass == Pass::kBackwardWeight) --deferred;
      }
      peak.slices = std::max(peak.slices, slices);
      peak.deferred = std::max(peak.deferred, deferred);
      most_alive = std::max(most_alive, alive);
    }
    peak.micro_batches = static_cast<double>(most_alive) / whole;
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Schedule& schedule, std::span<const std::int64_t> slice_tokens) {
  std::vector<std::int64_t> tokens(slice_tokens.begin(), slice_tokens.end());
  tokens.resize(static_cast<std::size_t>(schedule.slices), 1);
  return peaks_of(
      schedule, [&](const Action& action) { return tokens[static_cast<std::size_t>(action.slice)]; },
      std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}));
}

std::vector<MemoryPeak> memory_peaks(const Schedule& schedule, std::span<const MicroBatchCut> cuts) {
  check_equal(cuts.size(), static_cast<std::size_t>(schedule.micro_batches), "micro-batches that are cut");
  const auto tokens_of = [&](const Action& action) {
    const MicroBatchCut& cut = cuts[static_cast<std::size_t>(action.micro_batch)];
    return cut.sequences * cut.slice_tokens[static_cast<std::size_t>(action.slice)];
  };
  return peaks_of(schedule, tokens_of, cuts.front().sequences * cuts.front().tokens());
}

}  // namespace teratron::pipeline
