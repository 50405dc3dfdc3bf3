// Search for the first output or gradient that is not finite.
#pragma once

#include <span>
#include <string>

#include "executor/executor.h"

namespace teratron {

// Computes an update's micro-batches again, each for itself and on each rank for itself, so that no sum over
// micro-batches or ranks hides the place. Returns the first output or gradient that is not finite, with its rank and
// micro-batch, the same on all ranks of a copy of the model; empty: there is none.
std::string first_not_finite(Executor& executor, std::span<const MicroBatch> share);

}  // namespace teratron
