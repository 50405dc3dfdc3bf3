// Minimises a sum plus a multiple of a maximum, by a solver that minimises the sum alone under a bound on the maximum.
//
// TeraPipe's Algorithm 1 (arXiv 2102.07988, section 3.3) tries bounds from small to large in steps of epsilon. Here the
// bounds between which the best one may still lie are halved, most promising first: where no plan has a smaller sum
// than s, and no plan of the interval a smaller maximum than m, s and m bound what the interval can give. It ends when
// no interval can give anything better by more than epsilon times the maximum's weight: the paper's guarantee, after
// tens of solutions instead of thousands.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace teratron::slicing {

struct Weights {
  double sum = 1, longest = 1;  // what is minimised: sum * plan.sum + longest * plan.longest
};

// `solve(bound)` returns an optional of a plan with members `sum`, the least of any whose `longest` is at most `bound`,
// and `longest`; nothing where there is none. There is one without a bound. `solves` counts the calls.
template <class Solve>
auto search_threshold(const Solve& solve, const Weights& weights, double epsilon, int& solves) {
  struct Interval {
    double low, high;  // plans whose maximum lies between
    double sum;        // none of them has a smaller sum; a plan with this sum has the maximum `high`
  };
  const auto value = [&](double sum, double longest) { return weights.sum * sum + weights.longest * longest; };
  solves = 1;
  auto best = *solve(std::numeric_limits<double>::infinity());
  std::vector<Interval> open = {{0, best.longest, best.sum}};
  const auto bound = [&](const Interval& interval) { return value(interval.sum, interval.low); };
  while (!open.empty()) {
    const auto first = std::min_element(open.begin(), open.end(),
                                        [&](const Interval& a, const Interval& b) { return bound(a) < bound(b); });
    const Interval interval = *first;
    open.erase(first);
    if (bound(interval) >= value(best.sum, best.longest) - weights.longest * epsilon) break;
    const double middle = interval.low + (interval.high - interval.low) / 2;
    if (middle <= interval.low || middle >= interval.high) continue;  // neighbours: nothing lies between them
    ++solves;
    const auto plan = solve(middle);
    open.push_back({middle, interval.high, interval.sum});
    if (!plan) continue;
    open.push_back({interval.low, plan->longest, plan->sum});
    if (value(plan->sum, plan->longest) < value(best.sum, best.longest)) best = *plan;
  }
  return best;
}

}  // namespace teratron::slicing
