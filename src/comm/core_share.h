// How many cores each of several processes of one host gets. mpirun may bind processes to cores of their own or leave
// all of them to all; either way nobody should compute with more threads than its part of the host.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// The cores that the calling thread may run on, ascending.
std::vector<int> own_cores();

// The part of process `which` when every core goes to one of the processes that may run on it, as evenly as that
// allows; at least 1.
int core_share(const std::vector<std::vector<int>>& cores_of_process, std::size_t which);

std::string to_text(const std::vector<int>& cores);
std::vector<int> cores_from_text(std::string_view text);

}  // namespace teratron
