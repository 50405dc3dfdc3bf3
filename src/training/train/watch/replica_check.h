// Comparison of what several ranks hold in common, bit for bit.
#pragma once

#include <string>

#include "executor/executor.h"

namespace teratron {

// Compares the weights of data-parallel copies, of tensor-parallel ranks where a parameter is not split or has
// replicas, and of the first and the last stage, which share the tied embedding; masters and the optimizer's slots too
// unless they are sharded. All ranks of the mesh call it. Returns on all of them the same text: empty, or "rank 3 holds
// other bits of 'layers.0.norm1.weight' than ranks 0, 1, 2", or of two ranks that they hold different ones, for the
// first such tensor. Memory: a few MB; where the
// weights lie on a device, all of them are read.
std::string unequal_replicas(Executor& executor);

}  // namespace teratron
