// Peak memory of this process.
#pragma once

#include <cstdint>

namespace teratron {

// Highest resident bytes since the program started (VmHWM of /proc/self/status); 0: the system does not say.
std::uint64_t peak_memory_bytes();

}  // namespace teratron
