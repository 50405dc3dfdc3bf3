// This process as one of an MPI job. Without MPI, mpi_absent.cc stands in.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/process/process_job.h"

namespace teratron {

bool mpi_is_built();

struct MpiPlace {
  int processes = 1, process = 0;
};

MpiPlace start_mpi();
std::unique_ptr<ProcessJob> make_mpi_job();  // after start_mpi()
void leave_mpi(int exit_code);               // launch.h: leave_launch

// MPI's own sum over all processes, in place: what ours is measured against.
void mpi_all_reduce(float* values, std::int64_t count);

}  // namespace teratron
