#include "profile/processor_name.h"

#include <fmt/format.h>

#include <fstream>
#include <thread>

namespace teratron {
namespace {

// As the system names it; virtual machines say little, so also which of its kind it is, and of how many cores.
std::string host_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string name, family, model;
  for (std::string line; std::getline(file, line) && !line.empty();) {  // of the first core
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name"))
      name = value;
    else if (line.starts_with("cpu family"))
      family = value;
    else if (line.starts_with("model"))
      model = value;
  }
  return fmt::format("{} (family {}, model {}), {} cores", name.empty() ? "unknown" : name, family, model,
                     std::thread::hardware_concurrency());
}

}  // namespace

std::string processor_name(const Backend& backend) {
  std::string device = backend.processor();
  return device.empty() ? host_processor() : device;
}

}  // namespace teratron
