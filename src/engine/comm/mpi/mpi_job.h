// This process as one of an MPI job. Without MPI, mpi_absent.cc stands in.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/control/control_plane.h"

namespace teratron {

bool mpi_is_built();

struct MpiRank {
  int processes = 1, process = 0;
};

// Starts MPI, which waits for all processes. Where all run on one host, ranks open no port to the network, unless the
// user has chosen MPI's transports. A process that has not come is unknown here: no control plane exists yet. So the
// process says every `settings.notice_interval` that it waits, and calls end_process() after longest_meeting.
MpiRank start_mpi(const ControlSettings& settings);

// After start_mpi(). The first rank opens its listener and broadcasts where it listens, with a secret for the job.
// EnvironmentError: it does not do so within seconds.
// `bind`: the address that it listens at; empty: all of its host's, or the loopback address where the launcher says
// that all processes run on one host.
std::unique_ptr<ControlPlane> make_mpi_control_plane(const std::string& host, const ControlSettings& settings,
                                                     const std::string& bind);

std::unique_ptr<Communicator> make_mpi_world(ControlPlane& control);  // mpi_communicator.cc

void leave_mpi(int exit_code);  // launch.h: leave_launch

// MPI's own sum over all processes, in place: bench/all_reduce.cc compares ours with it.
void mpi_all_reduce(float* values, std::int64_t count);

}  // namespace teratron
