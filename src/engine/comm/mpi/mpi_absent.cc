// A build without MPI. detect_launch() asks mpi_is_built() first, so nothing else here is reached.
#include "base/error.h"
#include "comm/mpi/mpi_job.h"

namespace teratron {
namespace {

[[noreturn]] void refuse() { throw InternalError("this build has no MPI"); }

}  // namespace

bool mpi_is_built() { return false; }

MpiRank start_mpi(const ControlSettings&) { refuse(); }

std::unique_ptr<ControlPlane> make_mpi_control_plane(const std::string&, const ControlSettings&, const std::string&) {
  refuse();
}

std::unique_ptr<Communicator> make_mpi_world(ControlPlane&) { refuse(); }

void leave_mpi(int) {}

void mpi_all_reduce(float*, std::int64_t) { refuse(); }

}  // namespace teratron
