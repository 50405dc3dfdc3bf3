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

// to = keep * to + scale * from for elements [begin, end); without `to` on the right where keep is 0.
struct ScaleAddRange {
  const TensorRef& to;
  double keep;
  const TensorRef& from;
  double scale;
};
using ScaleAdd = void (*)(const ScaleAddRange& range, std::int64_t begin, std::int64_t end);

struct ElementwiseKernels {
  // y = activation(x) and dx = dy * activation'(x) for elements [begin, end).
  void (*activation_forward)(const ActivationForward& args, std::int64_t begin, std::int64_t end);
  void (*activation_backward)(const ActivationBackward& args, std::int64_t begin, std::int64_t end);
  // sum = a + b for elements [begin, begin + count).
  void (*add)(void* sum, const void* a, const void* b, std::int64_t begin, std::int64_t count);
  // Elements [begin, begin + count) in memory, which start at `first` in the whole tensor.
  void (*dropout_add)(const DropoutRange& range, std::int64_t begin, std::int64_t first, std::int64_t count);
};

}  // namespace teratron
