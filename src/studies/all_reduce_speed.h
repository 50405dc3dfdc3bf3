// How fast the all-reduce of a group is, beside a yardstick measured in turns with it. For ranks that are threads the
// yardstick is copying: every rank copies a view of the same size elsewhere, with the same threads and at the same
// time. An all-reduce of R ranks must read R views and write R views, and so does that, so neither can be faster where
// memory is the limit. For processes it is the same, and under MPI the MPI_Allreduce of the same MPI.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "comm/launch.h"

namespace teratron {

enum class Yardstick { kCopy, kMpi };
inline Yardstick yardstick_of(const LaunchEnvironment& environment) {
  return environment.has_mpi() ? Yardstick::kMpi : Yardstick::kCopy;
}

struct AllReduceSpeed {
  std::int64_t bytes = 0;  // of the view (f32) on each rank
  double all_reduce = 0;   // seconds from the first to the last rank; the median of the rounds
  double yardstick = 0;    // the same
  double ratio() const { return yardstick / all_reduce; }
  double bandwidth() const { return static_cast<double>(bytes) / all_reduce; }  // bytes of the view a second
  double yardstick_bandwidth() const { return static_cast<double>(bytes) / yardstick; }
};

// Every rank calls it, and gets the same.
AllReduceSpeed measure_all_reduce(Communicator& world, Yardstick yardstick, std::int64_t bytes);

}  // namespace teratron
