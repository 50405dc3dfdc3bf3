#include <algorithm>
#include <optional>

#include "base/error.h"
#include "slicing/least_sum.h"
#include "slicing/slicer.h"
#include "slicing/slicer_weights.h"
#include "slicing/threshold_search.h"

namespace teratron::slicing {
namespace {

// How to make up a batch of parts so that their costs add up to least; part_costs[b - 1]: of a part of b sequences, of
// which none has more.
struct Knapsack {
  double sum = kNever;
  std::vector<std::size_t> parts;  // sequences of each, most first
};

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
