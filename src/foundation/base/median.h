// Median of measured values.
#pragma once

#include <algorithm>
#include <vector>

namespace teratron {

// Middle value; of an even number of values the greater of the two in the middle. `values` is not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace teratron
