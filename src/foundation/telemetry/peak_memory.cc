#include "telemetry/peak_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace teratron {

// Unlike getrusage's ru_maxrss this does not survive exec, by which a small program would report its large parent.
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
