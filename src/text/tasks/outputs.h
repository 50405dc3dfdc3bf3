// What tasks ask of a model's outputs before they read them.
#pragma once

#include <algorithm>
#include <span>

#include "base/error.h"
#include "tasks/task.h"

namespace teratron {

// The place of the largest; the first of equal ones.
inline int place_of_largest(std::span<const float> values) {
  return static_cast<int>(std::ranges::max_element(values) - values.begin());
}

// InternalError unless each example has as many outputs as `wanted(i)` says.
template <class Wanted>
void check_outputs(const TaskOutputValues& outputs, std::int64_t examples, const Wanted& wanted) {
  check_equal(std::ssize(outputs), examples, "examples that have outputs");
  for (std::int64_t i = 0; i < examples; ++i) {
    check_equal(std::ssize(outputs[static_cast<std::size_t>(i)]), wanted(i), "outputs of an example");
  }
}

}  // namespace teratron
