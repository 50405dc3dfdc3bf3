// Groups of ranks that are processes. A transport carries bytes; sums are made here, in the ranks' order, since none
// that could be asked promises an order or the same bits on every rank, and MPI would round 16-bit sums at every step.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/process/liveness.h"
#include "comm/process/transport.h"

namespace teratron {

// `liveness` outlives it.
std::unique_ptr<Communicator> make_process_communicator(std::unique_ptr<Transport> transport, Liveness& liveness);

}  // namespace teratron
