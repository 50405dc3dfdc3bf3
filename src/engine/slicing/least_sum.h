// The inner programme of Algorithm 1: the cheapest way to cut a sequence of which no slice costs more than a bound.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "slicing/cost/cost_table.h"

namespace teratron::slicing {

constexpr double kNever = std::numeric_limits<double>::infinity();  // the cost of what cannot be

class LeastSum {
 public:
  explicit LeastSum(const CostTable& costs) : costs_(costs), best_(costs.intervals() + 1) {}

  // S*(i) = min_k S*(i - k) + t(k, i - k) over slices of at most `bound`; kNever where there is no way.
  double solve(double bound);

  // The boundaries of the last solution, 0 first; of those that are equally good, one with long slices at its end.
  std::vector<std::size_t> boundaries() const;

 private:
  const CostTable& costs_;
  std::vector<double> best_;  // [boundary]
  double bound_ = 0;
};

// Milliseconds of the longest slice between these boundaries.
double longest_slice(const CostTable& costs, const std::vector<std::size_t>& boundaries);

}  // namespace teratron::slicing
