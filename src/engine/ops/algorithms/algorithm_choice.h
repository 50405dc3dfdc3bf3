// Chooses an algorithm of a matrix product: the cached one, else the fastest of the library's best candidates. Calls of
// the device go through AlgorithmTrial.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/algorithms/algorithm_cache.h"

namespace teratron {

// One product on its device.
class AlgorithmTrial {
 public:
  virtual ~AlgorithmTrial() = default;
  // Algorithms for it, the one that the library thinks best first; at least one.
  virtual std::vector<AlgorithmBytes> candidates() = 0;
  // Whether one that was kept can be used for it.
  virtual bool can_use(const AlgorithmBytes& algorithm) = 0;
  // Microseconds that the product takes; nothing if it fails. Overwrites only what the product will write, or scratch.
  virtual std::optional<double> time(const AlgorithmBytes& algorithm) = 0;
};

// Index of the first of `times` (microseconds; none: it failed) within 1 %, the noise, of the least. Among equals the
// library's order decides, which is the same every time. Nothing if all failed.
std::optional<std::size_t> fastest(std::span<const std::optional<double>> times);

// The cached algorithm of the product `key` or, without one, the fastest candidate, which is then cached: every rank
// and every later run that shares the cache gets the same one. Candidates are timed in turns; a single one is returned
// without timing, and not cached. EnvironmentError: there are several, and none of them runs.
AlgorithmBytes choose_algorithm(const std::string& key, AlgorithmTrial& trial, AlgorithmCache& cache);

}  // namespace teratron
