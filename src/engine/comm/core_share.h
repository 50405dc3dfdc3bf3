// A process's share of its host's cores. mpirun may bind each process to its own cores, or leave all cores to all
// processes. In both cases a process should use no more threads than its share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

namespace teratron {

// Cores of process `which` when it shares them evenly with all processes that may run on one of them; the first of
// these get the remainder. At least 1. The cores of a process are in order (own_processors()).
inline int core_share(std::span<const std::vector<int>> cores_of_process, std::size_t which) {
  int sharing = 1, before = 0;
  for (std::size_t process = 0; process < cores_of_process.size(); ++process) {
    std::vector<int> common;
    std::ranges::set_intersection(cores_of_process[which], cores_of_process[process], std::back_inserter(common));
    if (process == which || common.empty()) continue;
    ++sharing;
    if (process < which) ++before;
  }
  return std::max(1, (static_cast<int>(cores_of_process[which].size()) + sharing - 1 - before) / sharing);
}

}  // namespace teratron
