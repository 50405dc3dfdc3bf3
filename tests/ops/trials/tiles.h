// Matrices in tiles for tests.
#pragma once

#include "ops/trials/host.h"
#include "tensor/weight_tiles.h"

namespace teratron::testing {

// A new tensor that holds a matrix [rows, columns] in tiles.
Tensor make_tiles(Backend& backend, DType dtype, const Shape& shape, const Values& values);

}  // namespace teratron::testing
