#include "slicing/least_sum.h"

#include <algorithm>

#include "base/error.h"

namespace teratron::slicing {

double LeastSum::solve(double bound) {
  bound_ = bound;
  std::fill(best_.begin(), best_.end(), kNever);
  best_[0] = 0;
  for (std::size_t begin = 0; begin + 1 < best_.size(); ++begin) {
    const double so_far = best_[begin];
    if (so_far == kNever) continue;
    const std::span<const double> costs = costs_.from(begin);
    double* const best = best_.data() + begin + 1;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const double sum = so_far + costs[i];
      if (costs[i] <= bound && sum < best[i]) best[i] = sum;
    }
  }
  return best_.back();
}

std::vector<std::size_t> LeastSum::boundaries() const {
  std::vector<std::size_t> cuts = {best_.size() - 1};
  while (cuts.back() > 0) {
    const std::size_t end = cuts.back();
    std::size_t begin = 0;
    // solve() adds in this order, so the sum is found exactly.
    while (begin < end && !(costs_.of(begin, end) <= bound_ && best_[begin] + costs_.of(begin, end) == best_[end])) {
      ++begin;
    }
    check(begin < end, "the way to the least sum leads back to the start");
    cuts.push_back(begin);
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

double longest_slice(const CostTable& costs, const std::vector<std::size_t>& boundaries) {
  double longest = 0;
  for (std::size_t i = 0; i + 1 < boundaries.size(); ++i) {
    longest = std::max(longest, costs.of(boundaries[i], boundaries[i + 1]));
  }
  return longest;
}

}  // namespace teratron::slicing
