// Of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace teratron {

// The middle one, of an even number the greater of the two; not of none.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace teratron
