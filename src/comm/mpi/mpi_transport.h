// MPI as what carries the bytes of a group of processes. Only its moving of bytes is used, and none of its waiting.
#pragma once

#include <mpi.h>

#include <memory>
#include <string_view>

#include "comm/process/liveness.h"
#include "comm/process/transport.h"

namespace teratron {

// EnvironmentError with MPI's own words where `code` is not MPI_SUCCESS.
void check_mpi(int code, std::string_view what);

// All processes of the job. `liveness` outlives it.
std::unique_ptr<Transport> make_mpi_world(Liveness& liveness);

}  // namespace teratron
