// Cores of each of several processes of one host. mpirun may bind each process to its own cores, or leave all cores to
// all processes. In both cases a process should use no more threads than its part of the host has cores.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace teratron {

// The cores that the calling thread may run on; none where the system does not say.
inline cpu_set_t own_cores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

// Cores of process `which` when it shares them evenly with all processes that may run on one of them; the first of
// these get the remainder. At least 1.
inline int core_share(const std::vector<cpu_set_t>& cores_of_process, std::size_t which) {
  int sharing = 1, before = 0;
  for (std::size_t process = 0; process < cores_of_process.size(); ++process) {
    cpu_set_t common;
    CPU_AND(&common, &cores_of_process[which], &cores_of_process[process]);
    if (process == which || CPU_COUNT(&common) == 0) continue;
    ++sharing;
    if (process < which) ++before;
  }
  return std::max(1, (CPU_COUNT(&cores_of_process[which]) + sharing - 1 - before) / sharing);
}

}  // namespace teratron
