// The blocks that ops/working_memory.h adds up.
#pragma once

#include "ops/cpu/scratch.h"
#include "ops/working_memory.h"

namespace teratron {

// The most that a thread takes. One that starts loops takes all; its helpers pack no panels and add up no parts.
ScratchSizes most_scratch(const WorkShapes& work, DType compute_dtype, bool starts_loops, bool bf16_products = true);

}  // namespace teratron
