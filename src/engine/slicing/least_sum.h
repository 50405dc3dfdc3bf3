// The inner dynamic program of Algorithm 1: the cheapest cut of a sequence in which no slice costs more than a bound.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "slicing/cost/cost_table.h"

namespace teratron::slicing {

constexpr double kNever = std::numeric_limits<double>::infinity();  // the cost of a cut that is impossible

class LeastSum {
 public:
  explicit LeastSum(const CostTable& costs) : costs_(costs), best_(costs.intervals() + 1) {}

  // The least sum of costs over all cuts: S*(i) = min_k S*(i - k) + t(k, i - k), over slices that cost at most `bound`.
  // kNever: there is no such cut.
  double solve(double bound);

  // Boundaries of the last solution, 0 first. Among equally good cuts, the last slice is as long as possible, then the
  // one before it, and so on.
  std::vector<std::size_t> boundaries() const;

 private:
  const CostTable& costs_;
  std::vector<double> best_;  // [boundary]
  double bound_ = 0;
};

// Milliseconds of the longest slice between these boundaries.
double longest_slice(const CostTable& costs, const std::vector<std::size_t>& boundaries);

}  // namespace teratron::slicing
