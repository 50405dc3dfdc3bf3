// Bytes of a GPU in a published run, counted in closed form: nothing is fitted to memory.
#pragma once

#include "plan/reproduction/published_runs.h"

namespace teratron::plan {

// Weights, gradients and the optimizer's state, and what is gathered of weights.
double state_bytes_of(const PublishedRun& run);
// Activations of the first stage, and of a model without stages also what its loss takes. Runs by FSDP report what
// PyTorch's allocator reserved: blocks of one stream serve no other, and a hole serves what is not larger than it.
double activation_bytes_of(const PublishedRun& run);

}  // namespace teratron::plan
