#include <algorithm>
#include <optional>

#include "base/error.h"
#include "slicing/least_sum.h"
#include "slicing/slicer.h"
#include "slicing/slicer_weights.h"
#include "slicing/threshold_search.h"

namespace teratron::slicing {
namespace {

struct PairPlan {
  std::vector<std::size_t> boundaries;
  double sum = 0, longest = 0;
};

double longest_pair(const CostTable& forward, const CostTable& backward, const std::vector<std::size_t>& boundaries) {
  const std::size_t slices = boundaries.size() - 1;
  double longest = 0;
  for (std::size_t i = 0; i < slices; ++i) {
    const std::size_t j = slices - 1 - i;
    longest =
        std::max(longest, forward.of(boundaries[i], boundaries[i + 1]) + backward.of(boundaries[j], boundaries[j + 1]));
  }
  return longest;
}

// The cheapest slicing with no pair above a bound. A state (left, right) has slices from the start up to boundary
// `left` and from boundary `right` to the end, as many on either side; each step adds one on both sides.
class PairProgramme {
 public:
  PairProgramme(const CostTable& forward, const CostTable& backward)
      : forward_(forward), backward_(backward), whole_(forward.plus(backward)), intervals_(forward.intervals()) {}

  std::optional<PairPlan> solve(double bound) {
    if (bound == kNever) return without_bound();
    bound_ = bound;
    best_.assign((intervals_ + 1) * (intervals_ + 1), kNever);
    from_.assign(best_.size(), 0);
    best_[state(0, intervals_)] = 0;
    find_candidates();
    sum_ = kNever;
    for (std::size_t done = 0; done <= intervals_; ++done) {
      for (std::size_t left = 0; left <= done; ++left) visit(left, intervals_ - (done - left));
    }
    if (sum_ == kNever) return std::nullopt;
    return trace_back();
  }

 private:
  std::size_t state(std::size_t left, std::size_t right) const { return left * (intervals_ + 1) + right; }

  PairPlan without_bound() const {
    LeastSum programme(whole_);
    const double sum = programme.solve(kNever);
    std::vector<std::size_t> boundaries = programme.boundaries();
    const double longest = longest_pair(forward_, backward_, boundaries);
    return {std::move(boundaries), sum, longest};
  }

  // Slices of which neither pass is above the bound, by where they begin and by where they end.
  void find_candidates() {
    ends_.assign(intervals_ + 1, {});
    begins_.assign(intervals_ + 1, {});
    for (std::size_t begin = 0; begin < intervals_; ++begin) {
      for (std::size_t end = begin + 1; end <= intervals_; ++end) {
        if (forward_.of(begin, end) > bound_ || backward_.of(begin, end) > bound_) continue;
        ends_[begin].push_back(end);
        begins_[end].push_back(begin);
      }
    }
  }

  void finish(double sum, std::size_t left, std::size_t right) {
    if (sum >= sum_) return;
    sum_ = sum;
    last_ = {left, right};
  }

  void visit(std::size_t left, std::size_t right) {
    const double so_far = best_[state(left, right)];
    if (so_far == kNever) return;
    if (left == right) return finish(so_far, left, right);
    if (whole_.of(left, right) <= bound_)
      finish(so_far + whole_.of(left, right), left, right);  // the one in the middle
    for (const std::size_t left_end : ends_[left]) {
      if (left_end >= right) break;
      const double left_forward = forward_.of(left, left_end), left_backward = backward_.of(left, left_end);
      const double sum = so_far + whole_.of(left, left_end);
      const std::vector<std::size_t>& begins = begins_[right];
      for (auto begin = begins.rbegin(); begin != begins.rend() && *begin >= left_end; ++begin) {
        if (left_forward + backward_.of(*begin, right) > bound_) continue;
        if (forward_.of(*begin, right) + left_backward > bound_) continue;
        const double next_sum = sum + whole_.of(*begin, right);
        const std::size_t next = state(left_end, *begin);
        if (next_sum >= best_[next]) continue;
        best_[next] = next_sum;
        from_[next] = state(left, right);
      }
    }
  }

  PairPlan trace_back() const {
    PairPlan plan{.sum = sum_};
    auto [left, right] = last_;
    plan.boundaries = {left};
    if (right != left) plan.boundaries.push_back(right);
    while (left != 0 || right != intervals_) {
      const std::size_t before = from_[state(left, right)];
      left = before / (intervals_ + 1);
      right = before % (intervals_ + 1);
      plan.boundaries.insert(plan.boundaries.begin(), left);
      plan.boundaries.push_back(right);
    }
    plan.longest = longest_pair(forward_, backward_, plan.boundaries);
    return plan;
  }

  const CostTable &forward_, &backward_;
  CostTable whole_;  // both together
  std::size_t intervals_;
  double bound_ = 0;
  std::vector<std::vector<std::size_t>> ends_, begins_;
  std::vector<double> best_;       // [left, right]
  std::vector<std::size_t> from_;  // the state before
  double sum_ = kNever;            // of the best way to the middle
  std::pair<std::size_t, std::size_t> last_;
};

}  // namespace

Slicing best_pair_slicing(const CostTable& forward, const CostTable& backward, const SlicerOptions& options) {
  PairProgramme programme(forward, backward);
  const Weights weights = weights_of(options);
  int solves = 0;
  const PairPlan best =
      search_threshold([&](double bound) { return programme.solve(bound); }, weights, options.epsilon, solves);
  return {.lengths = forward.lengths(best.boundaries),
          .sum = best.sum,
          .longest = best.longest,
          .time = weights.sum * best.sum + weights.longest * best.longest,
          .solves = solves};
}

}  // namespace teratron::slicing
