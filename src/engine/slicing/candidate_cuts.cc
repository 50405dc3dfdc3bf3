#include "slicing/candidate_cuts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/token_slices.h"
#include "slicing/slicer.h"

namespace teratron::slicing {
namespace {

using Lengths = std::vector<std::int64_t>;

// Numbers of slices that are tried for each kind of cut. Between neighbouring large numbers the time hardly changes.
constexpr std::size_t kCounts[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 28, 32, 48, 64};

// Boundaries of the longest slices that cost at most `bound` each. A slice has at least one step of the grid, whatever
// that costs.
std::vector<std::size_t> longest_within(const CostTable& costs, double bound) {
  std::vector<std::size_t> boundaries = {0};
  while (boundaries.back() < costs.intervals()) {
    const std::span<const double> ends = costs.from(boundaries.back());
    const auto fitting = std::ranges::upper_bound(ends, bound) - ends.begin();
    boundaries.push_back(boundaries.back() + static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, fitting)));
  }
  return boundaries;
}

Lengths even_on_grid(const CostTable& costs, std::size_t count) {
  Lengths steps = pipeline::even_slices(static_cast<std::int64_t>(costs.intervals()), static_cast<int>(count));
  std::vector<std::size_t> boundaries = {0};
  for (const std::int64_t step : steps) boundaries.push_back(boundaries.back() + static_cast<std::size_t>(step));
  return costs.lengths(boundaries);
}

// Even slices, the last of which is a third shorter: it is the only slice that both ends the forward phase and begins
// the backward phase.
Lengths short_last_on_grid(const CostTable& costs, std::size_t count) {
  const std::size_t step = (3 * costs.intervals() + 3 * count / 2) / (3 * count - 1);
  std::vector<std::size_t> boundaries = {0};
  while (boundaries.back() + step < costs.intervals()) boundaries.push_back(boundaries.back() + step);
  boundaries.push_back(costs.intervals());
  return costs.lengths(boundaries);
}

// At most `count` slices, the most expensive of which is as cheap as the grid allows. Early slices attend to fewer
// tokens, so they are longer. A longer slice must not cost less than a shorter one.
Lengths equal_work_slices(const CostTable& costs, std::size_t count) {
  constexpr int kHalvings = 40;
  double too_low = 0, enough = costs.of(0, costs.intervals());
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = too_low + (enough - too_low) / 2;
    (longest_within(costs, middle).size() - 1 <= count ? enough : too_low) = middle;
  }
  return costs.lengths(longest_within(costs, enough));
}

}  // namespace

Lengths algorithm_1_cut(const CostTable& costs, const CutLimits& limits, int further) {
  const double epsilon = 1e-4 * costs.of(0, costs.intervals());
  return best_slicing(costs, {.stages = 1 + further, .micro_batches = limits.micro_batches, .epsilon = epsilon})
      .lengths;
}

std::vector<Lengths> algorithm_1_cuts(const CostTable& costs, const CutLimits& limits) {
  std::vector<Lengths> cuts;
  int solved = 0;  // the last number of further stages; short pipelines come to the same one several times
  for (int quarters = 1; quarters <= 16; quarters *= 2) {
    const int further = std::max(1, limits.further * quarters / 4);
    if (further == solved) continue;
    solved = further;
    Lengths cut = algorithm_1_cut(costs, limits, further);
    if (std::ranges::find(cuts, cut) == cuts.end()) cuts.push_back(std::move(cut));
  }
  return cuts;
}

std::vector<Lengths> candidate_cuts(const CostTable& costs, const CutLimits& limits) {
  std::set<Lengths> known = {{costs.tokens()}};
  std::vector<Lengths> cuts;
  const auto add = [&](Lengths lengths) {
    if (lengths.size() <= limits.most_slices && known.insert(lengths).second) cuts.push_back(std::move(lengths));
  };
  const auto longest = static_cast<std::size_t>(costs.tokens() / limits.fewest_tokens);
  for (const std::size_t count : kCounts) {
    if (count > std::min({limits.most_slices, costs.intervals(), longest})) break;
    add(even_on_grid(costs, count));
    add(short_last_on_grid(costs, count));
    add(equal_work_slices(costs, count));
  }
  for (Lengths& cut : algorithm_1_cuts(costs, limits)) add(std::move(cut));
  return cuts;
}

}  // namespace teratron::slicing
