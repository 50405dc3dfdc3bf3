// What it takes to bring a slice's activations from a stage to the next one.
#pragma once

#include "comm/mesh.h"
#include "ops/backend.h"
#include "slicing/profile.h"

namespace teratron {

// Views of `shortest` and `longest` tokens go to and fro between each two neighbours, one pair after another; of the
// slowest pair. Zero for one stage. Every rank of the mesh calls it; all have the same result.
slicing::TransferTime measure_transfers(Mesh& mesh, Backend& backend, std::int64_t hidden_size, std::int64_t shortest,
                                        std::int64_t longest);

}  // namespace teratron
