// How a parameter is stored: its true rows, without those that only round the vocabulary's size up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nn/parameter.h"

namespace teratron {

inline std::vector<std::int64_t> stored_shape(const Parameter& parameter) {
  std::vector<std::int64_t> shape;
  for (int axis = 0; axis < parameter.shape.rank(); ++axis) shape.push_back(parameter.shape[axis]);
  if (!shape.empty()) shape[0] -= parameter.padding_rows;
  return shape;
}

// The same tensor in a Hugging Face file, whose linear layers are stored [inputs, outputs].
inline std::vector<std::int64_t> hugging_face_shape(const Parameter& parameter) {
  std::vector<std::int64_t> shape = stored_shape(parameter);
  if (parameter.hugging_face_transposed) std::ranges::reverse(shape);
  return shape;
}

// Padding rows are the last, so that what is stored is the first so many values.
inline std::int64_t stored_values(const Parameter& parameter) {
  std::int64_t values = 1;
  for (const std::int64_t dim : stored_shape(parameter)) values *= dim;
  return values;
}

}  // namespace teratron
