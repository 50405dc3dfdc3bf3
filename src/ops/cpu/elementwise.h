// The loops of elementwise.cc, for one storage type.
#pragma once

#include "ops/backend.h"

namespace teratron {

// sum = residual + dropout(branch); without a residual (null) sum = dropout(branch).
struct DropoutRange {
  void* sum;
  const void* residual;
  const void* branch;
  const Dropout& dropout;
};

struct ElementwiseKernels {
  // sum = a + b for elements [begin, begin + count).
  void (*add)(void* sum, const void* a, const void* b, std::int64_t begin, std::int64_t count);
  // Elements [begin, begin + count) in memory, which start at `first` in the whole tensor.
  void (*dropout_add)(const DropoutRange& range, std::int64_t begin, std::int64_t first, std::int64_t count);
};

}  // namespace teratron
