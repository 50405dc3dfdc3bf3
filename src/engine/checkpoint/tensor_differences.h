// Comparison of two models' tensors, value by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace teratron {

struct TensorDifference {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t values = 0, differing = 0;  // two values are equal if they are the same number, or both NaN
  std::int64_t first = 0;                  // index of the first differing value, row-major
  // Over values that are finite on both sides, in double; 0 where the tensors are not floating.
  double largest = 0;   // max |a - b|
  double relative = 0;  // ||a - b|| / ||a||, Euclidean norms; infinite where a is zero
};

struct TensorComparison {
  std::int64_t compared = 0;             // tensors of one name and shape
  std::vector<TensorDifference> parted;  // of these, in the order of `a`
  std::vector<std::string> only_in_a, only_in_b;
  std::vector<std::string> other_shape;  // a line each, which says both shapes
  bool equal() const { return parted.empty() && only_in_a.empty() && only_in_b.empty() && other_shape.empty(); }
};

// `tolerance`: a tensor has parted if its relative difference is larger, or a value is finite on one side alone; 0: if
// any value differs. An optimizer's tensors are left out where the other side has none at all. Tensors whose checksums
// are equal are not read. Floating types may differ: both become double. Memory: one tensor of `a`.
TensorComparison compare(const TensorSource& a, const TensorSource& b, double tolerance = 0);

}  // namespace teratron
