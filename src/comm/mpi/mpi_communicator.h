// Groups of ranks that are MPI processes. MPI carries bytes; sums are made here, in the ranks' order, since MPI
// promises neither an order nor the same bits on every rank, and would round 16-bit sums at every step.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/communicator.h"
#include "comm/mpi/liveness.h"

namespace teratron {

// All processes of the job. `liveness` outlives it.
std::unique_ptr<Communicator> make_mpi_world(Liveness& liveness);

}  // namespace teratron
