#include "base/host/control_groups.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace teratron {

namespace fs = std::filesystem;

// They lie below /sys/fs/cgroup, by the lines of /proc/self/cgroup, "number:controllers:path". Inside of a container
// the path is that of the host, and the group itself is what is mounted there.
std::vector<fs::path> control_groups(std::string_view controller, const fs::path& root) {
  std::vector<fs::path> groups;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    fs::path mount = root / "sys/fs/cgroup";
    if (!controllers.empty()) {
      if (fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) == std::string::npos) continue;
      mount /= controllers;
    }
    fs::path group = mount / fs::path(line.substr(second + 1)).relative_path();
    for (;; group = group.parent_path()) {
      groups.push_back(group);
      if (group == mount || !group.has_relative_path()) break;
    }
  }
  return groups;
}

std::optional<std::int64_t> control_value(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

}  // namespace teratron
