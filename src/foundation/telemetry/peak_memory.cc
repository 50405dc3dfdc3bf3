#include "telemetry/peak_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace teratron {

// Not getrusage's ru_maxrss: that one survives exec, so a small program started from a large one reports the large one.
std::uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kibibytes = 0;
    if (words >> key && key == "VmHWM:" && words >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace teratron
