#include "profile/processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>

namespace teratron {
namespace {

// Cores of Arm Limited. /proc/cpuinfo has only their part numbers.
struct ArmCore {
  std::string_view part, name;
};
constexpr ArmCore kArmCores[] = {{"0xd08", "Cortex-A72"},  {"0xd0b", "Cortex-A76"},  {"0xd0c", "Neoverse N1"},
                                 {"0xd40", "Neoverse V1"}, {"0xd49", "Neoverse N2"}, {"0xd4f", "Neoverse V2"}};

std::string arm_core(std::string_view implementer, std::string_view part) {
  const auto* const known = std::ranges::find(kArmCores, part, &ArmCore::part);
  const bool is_known = implementer == "0x41" && known != std::end(kArmCores);
  return fmt::format("{} (implementer {}, part {})", is_known ? known->name : "Arm processor", implementer, part);
}

std::string host_processor() {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return fmt::format("{}, {} cores", processor_in(text), std::thread::hardware_concurrency());
}

}  // namespace

std::string processor_in(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  std::map<std::string, std::string> values;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const std::size_t name_end = line.find_last_not_of(" \t", line.find(':') - 1), colon = line.find(": ");
    if (colon != std::string::npos) values.try_emplace(line.substr(0, name_end + 1), line.substr(colon + 2));
  }
  if (values.contains("CPU implementer")) return arm_core(values["CPU implementer"], values["CPU part"]);
  const std::string& name = values["model name"];
  return fmt::format("{} (family {}, model {})", name.empty() ? "unknown" : name, values["cpu family"],
                     values["model"]);
}

std::string processor_name(const Backend& backend) {
  std::string device = backend.processor();
  return device.empty() ? host_processor() : device;
}

}  // namespace teratron
