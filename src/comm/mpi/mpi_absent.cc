// A build without MPI: detect_launch() asks mpi_is_built() first, so nothing else here is ever reached.
#include "base/error.h"
#include "comm/mpi/mpi_job.h"

namespace teratron {

bool mpi_is_built() { return false; }

MpiPlace start_mpi() { throw InternalError("this build has no MPI"); }

std::unique_ptr<ProcessJob> make_mpi_job() { throw InternalError("this build has no MPI"); }

void leave_mpi(int) {}

void mpi_all_reduce(float*, std::int64_t) { throw InternalError("this build has no MPI"); }

}  // namespace teratron
