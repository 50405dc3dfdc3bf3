// This process as one rank of an MPI job. Without MPI, mpi_absent.cc stands in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/communicator.h"

namespace teratron {

bool mpi_is_built();

struct MpiPlace {
  int processes = 1, process = 0;
};

MpiPlace start_mpi();
void run_mpi_rank(const std::string& host, const std::function<void(Communicator& world)>& body);
void leave_mpi(int exit_code);  // launch.h: leave_launch

// MPI's own sum over all processes, in place: what ours is measured against.
void mpi_all_reduce(float* values, std::int64_t count);

}  // namespace teratron
