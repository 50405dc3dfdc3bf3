// T = M * sum t_i + (K - 1) * max t_j (TeraPipe, section 3.3, Equation 5) as weights of the two.
#pragma once

#include "base/error.h"
#include "slicing/slicer.h"
#include "slicing/threshold_search.h"

namespace teratron::slicing {

inline Weights weights_of(const SlicerOptions& options) {
  check(options.stages >= 1 && options.micro_batches >= 1 && options.epsilon >= 0, "the slicer's options make sense");
  return {.sum = static_cast<double>(options.micro_batches), .longest = static_cast<double>(options.stages - 1)};
}

}  // namespace teratron::slicing
