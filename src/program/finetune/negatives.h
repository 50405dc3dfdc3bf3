// Batches of examples that are one another's negatives within a micro-batch (model/negatives.h).
#pragma once

#include <cstdint>

#include "model/negatives.h"

namespace teratron {

// Checks that all micro-batches of an update are whole, and that copies of the model have as many each. All numbers
// count examples. UserError: they are not.
void require_whole_groups(std::int64_t batch, std::int64_t micro_batch, std::int64_t copies);

}  // namespace teratron
