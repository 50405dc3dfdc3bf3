#include "pipeline/memory.h"

#include <algorithm>
#include <numeric>

namespace teratron::pipeline {

std::vector<MemoryPeak> memory_peaks(const Schedule& schedule, std::span<const std::int64_t> slice_tokens) {
  // Tokens are added up as integers and divided at the end, so that whole micro-batches are whole numbers.
  std::vector<std::int64_t> tokens(slice_tokens.begin(), slice_tokens.end());
  tokens.resize(static_cast<std::size_t>(schedule.slices), 1);
  const auto whole =
      static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0})) * schedule.virtual_stages;
  std::vector<MemoryPeak> peaks;
  for (const std::vector<Action>& list : schedule.actions) {
    MemoryPeak peak;
    std::int64_t slices = 0, deferred = 0, alive = 0, most_alive = 0;
    for (const Action& action : list) {
      const std::int64_t size = tokens[static_cast<std::size_t>(action.slice)];
      if (action.pass == Pass::kForward) {
        ++slices;
        alive += size;
      } else if (action.pass == Pass::kBackwardInput) {
        ++deferred;
      } else {
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

}  // namespace teratron::pipeline
