#include "slicing/slicer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "slicing/least_sum.h"

namespace teratron::slicing {
namespace {

struct Weights {
  double sum = 1, longest = 1;  // search_threshold() minimises sum * plan.sum + longest * plan.longest
};

// Minimises a sum plus a multiple of a maximum, by a solver that minimises the sum under a bound on the maximum.
//
// TeraPipe's Algorithm 1 (arXiv 2102.07988, section 3.3) tries bounds from small to large in steps of epsilon. Here
// intervals that may hold the best bound are halved, the most promising first. If no plan of an interval has a smaller
// sum than s or a smaller maximum than m, then s and m bound the value of all its plans. The search ends when no
// interval can improve the value by more than epsilon times the maximum's weight. That is the paper's guarantee, after
// tens of solutions instead of thousands.
//
// `solve(bound)` returns an optional plan with members `sum` and `longest`: the plan of least `sum` among those whose
// `longest` is at most `bound`; none if there is no such plan. An infinite bound always has a plan. `solves` counts the
// calls.
template <class Solve>
auto search_threshold(const Solve& solve, const Weights& weights, double epsilon, int& solves) {
  struct Interval {
    double low, high;  // of the maxima of its plans
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

// T = M * sum t_i + (K - 1) * max t_j (TeraPipe, section 3.3, Equation 5) as weights of the two.
Weights weights_of(const SlicerOptions& options) {
  check(options.stages >= 1 && options.micro_batches >= 1 && options.epsilon >= 0, "the slicer's options make sense");
  return {.sum = static_cast<double>(options.micro_batches), .longest = static_cast<double>(options.stages - 1)};
}

// The cheapest parts that make up a batch.
struct Knapsack {
  double sum = kNever;
  std::vector<std::size_t> parts;  // sequences of each, most first
};

// part_costs[b - 1]: the cost of a part of b sequences.
Knapsack pack(std::span<const double> part_costs, std::size_t batch) {
  std::vector<double> best(batch + 1, kNever);
  std::vector<std::size_t> last(batch + 1, 0);
  best[0] = 0;
  for (std::size_t filled = 1; filled <= batch; ++filled) {
    for (std::size_t part = 1; part <= std::min(filled, part_costs.size()); ++part) {
      const double sum = best[filled - part] + part_costs[part - 1];
      if (sum >= best[filled]) continue;
      best[filled] = sum;
      last[filled] = part;
    }
  }
  Knapsack result{.sum = best[batch]};
  if (result.sum == kNever) return result;
  for (std::size_t left = batch; left > 0; left -= last[left]) result.parts.push_back(last[left]);
  std::sort(result.parts.rbegin(), result.parts.rend());
  return result;
}

class JointProgramme {
 public:
  JointProgramme(std::span<const CostTable> costs, std::size_t batch) : costs_(costs), batch_(batch) {
    for (const CostTable& table : costs) {
      check(table.tokens() == costs[0].tokens() && table.intervals() == costs[0].intervals(),
            "slices of any number of sequences have the same boundaries");
      programmes_.emplace_back(table);
    }
  }

  std::optional<JointSlicing> solve(double bound) {
    std::vector<double> part_costs;
    for (LeastSum& programme : programmes_) part_costs.push_back(programme.solve(bound));
    const Knapsack knapsack = pack(part_costs, batch_);
    if (knapsack.sum == kNever) return std::nullopt;
    JointSlicing slicing{.sum = knapsack.sum};
    for (const std::size_t sequences : knapsack.parts) {
      const std::vector<std::size_t> boundaries = programmes_[sequences - 1].boundaries();
      const CostTable& table = costs_[sequences - 1];
      slicing.longest = std::max(slicing.longest, longest_slice(table, boundaries));
      slicing.parts.push_back({static_cast<int>(sequences), table.lengths(boundaries)});
    }
    return slicing;
  }

 private:
  std::span<const CostTable> costs_;
  std::size_t batch_;
  std::vector<LeastSum> programmes_;  // [sequences - 1]
};

}  // namespace

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

JointSlicing best_joint_slicing(std::span<const CostTable> costs, const SlicerOptions& options, std::size_t batch) {
  check(!costs.empty(), "a batch has a sequence");
  JointProgramme programme(costs, batch == 0 ? costs.size() : batch);
  const Weights weights = weights_of(options);
  int solves = 0;
  JointSlicing best =
      search_threshold([&](double bound) { return programme.solve(bound); }, weights, options.epsilon, solves);
  best.time = weights.sum * best.sum + weights.longest * best.longest;
  best.solves = solves;
  return best;
}

}  // namespace teratron::slicing
