// Clocks of the host, in seconds.
#pragma once

#include <chrono>

namespace teratron {

// Monotonic clock, the same in all processes of the host.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since 1970.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace teratron
