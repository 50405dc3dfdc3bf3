// Stored form of a parameter: whole, in any layout, and without the rows that pad the vocabulary.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nn/parameter.h"

namespace teratron {

inline std::vector<std::int64_t> stored_shape(const Parameter& parameter) {
  std::vector<std::int64_t> shape;
  const Shape global = parameter.global_shape();
  for (int axis = 0; axis < global.rank(); ++axis) shape.push_back(global[axis]);
  if (!shape.empty()) shape[0] -= parameter.padding_rows;
  return shape;
}

// Whether it has memory on this stage of a pipeline.
inline bool is_held(const Parameter& parameter) { return static_cast<bool>(parameter.value); }

}  // namespace teratron
