// Tensor maps, by which a device copies boxes of a tensor (cp.async.bulk.tensor) on Hopper and later.
#pragma once

#include <cuda.h>

#include "tensor/tensor.h"

namespace teratron::cuda {

// A map of a 16-bit view [B, S, H, D] whose rows start on 16 bytes; its axes are, from the fastest on, D, H, S, B. A
// box is `rows` of one head, of `columns` (32 or 64) from a multiple of that on; in shared memory its 16-byte chunks
// are swizzled over a row. Zeros are outside the view. EnvironmentError if the driver has no tensor maps or refuses
// this one.
CUtensorMap tensor_map_of(const TensorRef& view, int rows, int columns);

}  // namespace teratron::cuda
