// The most memory this process has held at any moment.
#pragma once

#include <cstdint>

namespace teratron {

// Resident bytes at their highest since the program started (VmHWM of /proc/self/status); 0 where the system does not
// tell.
std::uint64_t peak_memory_bytes();

}  // namespace teratron
