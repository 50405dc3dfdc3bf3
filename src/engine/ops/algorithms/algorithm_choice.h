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
  // Microseconds that the product takes; nothing where it fails. Changes nothing that anybody reads.
  virtual std::optional<double> time(const AlgorithmBytes& algorithm) = 0;
};

// The first of `times` (microseconds; none: it failed) that no other beats by more than one part in a hundred, the
// noise of times: the library's order has a meaning, and is the same every time. Nothing where all failed.
std::optional<std::size_t> fastest(std::span<const std::optional<double>> times);

// Every rank and every later run that shares the cache gets the same one. The candidates take turns at being timed;
// where there is one only, it is taken as it is. EnvironmentError where there is a choice and none of them runs.
AlgorithmBytes choose_algorithm(const std::string& key, AlgorithmTrial& trial, AlgorithmCache& cache);

}  // namespace teratron
