// Seconds of the host's monotonic clock, which all its processes share.
#pragma once

#include <chrono>

namespace teratron {

inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace teratron
