#include "slicing/cost/cost_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/round_up.h"

namespace teratron::slicing {

std::int64_t slice_grid(std::int64_t tokens, std::int64_t unit, std::int64_t steps) {
  constexpr std::int64_t kBlock = 16, kFewest = 16;
  const std::int64_t block = std::lcm(unit, kBlock);
  return round_up((tokens + steps - 1) / steps, kFewest * block <= tokens ? block : unit);
}

CostTable::CostTable(std::int64_t tokens, std::int64_t granularity,
                     const std::function<double(std::int64_t length, std::int64_t context)>& cost)
    : tokens_(tokens), granularity_(granularity) {
  check(tokens >= 1 && granularity >= 1, "a cost table is of one token at least");
  const auto intervals = static_cast<std::size_t>((tokens + granularity - 1) / granularity);
  costs_.reserve(intervals * (intervals + 1) / 2);
  rows_.push_back(0);
  for (std::size_t begin = 0; begin < intervals; ++begin) {
    const std::int64_t context = boundary(begin);
    for (std::size_t end = begin + 1; end <= intervals; ++end) {
      const double milliseconds = cost(boundary(end) - context, context);
      check(std::isfinite(milliseconds) && milliseconds >= 0, "costs are finite and not negative");
      costs_.push_back(milliseconds);
    }
    rows_.push_back(costs_.size());
  }
}

std::int64_t CostTable::boundary(std::size_t index) const {
  return std::min(static_cast<std::int64_t>(index) * granularity_, tokens_);
}

std::vector<std::int64_t> CostTable::lengths(std::span<const std::size_t> boundaries) const {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i + 1 < boundaries.size(); ++i) {
    lengths.push_back(boundary(boundaries[i + 1]) - boundary(boundaries[i]));
  }
  return lengths;
}

}  // namespace teratron::slicing
