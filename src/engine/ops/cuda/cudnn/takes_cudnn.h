// Calls of attention that cuDNN is asked to compute. Our own kernels compute the others.
#pragma once

#include "ops/backend.h"

namespace teratron::cuda {

// It takes 16-bit views whose rows start on 16 bytes, with head sizes that are multiples of 8 up to 128, no dropout
// (its mask would be another), no lengths (our kernels skip padding) and at least two queries, on compute capability 8
// or later. Backward, the gradients of keys and values must be overwritten and of the same type: cuDNN cannot add to
// them.
bool takes_cudnn(const AttentionForward& args, int compute_capability_major);
bool takes_cudnn(const AttentionBackward& args, int compute_capability_major);

}  // namespace teratron::cuda
