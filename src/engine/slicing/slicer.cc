#include "slicing/slicer.h"

#include <limits>
#include <optional>

#include "slicing/least_sum.h"
#include "slicing/slicer_weights.h"
#include "slicing/threshold_search.h"

namespace teratron::slicing {

Slicing best_slicing(const CostTable& costs, const SlicerOptions& options) {
  struct Plan {
    std::vector<std::size_t> boundaries;
    double sum, longest;
  };
  LeastSum programme(costs);
  const auto solve = [&](double bound) -> std::optional<Plan> {
    const double sum = programme.solve(bound);
    if (sum == std::numeric_limits<double>::infinity()) return std::nullopt;
    std::vector<std::size_t> boundaries = programme.boundaries();
    const double longest = longest_slice(costs, boundaries);
    return Plan{std::move(boundaries), sum, longest};
  };
  const Weights weights = weights_of(options);
  int solves = 0;
  const Plan best = search_threshold(solve, weights, options.epsilon, solves);
  return {.lengths = costs.lengths(best.boundaries),
          .sum = best.sum,
          .longest = best.longest,
          .time = weights.sum * best.sum + weights.longest * best.longest,
          .solves = solves};
}

}  // namespace teratron::slicing
