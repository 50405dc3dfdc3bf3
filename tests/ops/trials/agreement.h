// Whether two back ends did the same.
#pragma once

#include <string>

#include "ops/trials/trial.h"

namespace teratron::testing {

// The first element of an output that is not within the allowed error of `expected`, which a back end of higher
// precision left, or the arguments around which something was written; empty if there is none. NaN where neither wrote
// and infinities are alike.
std::string disagreement(const Trial& trial, const Outcome& actual, const Outcome& expected, DType compute,
                         bool tensor_cores);

}  // namespace teratron::testing
