// The blocks that ops/working_memory.h adds up.
#pragma once

#include "ops/cpu/scratch.h"
#include "ops/working_memory.h"

namespace teratron {

// The most that a thread takes. One that starts loops takes all; its helpers pack no panels and add up no parts.
ScratchSizes most_scratch(const WorkShapes& work, const CpuOptions& options, bool starts_loops);

}  // namespace teratron
