#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace teratron {
namespace {

namespace fs = std::filesystem;

// The first number of a file; none where it is absent or begins otherwise ("max").
std::optional<double> number_in(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// Version 2: "quota period" or "max period". Version 1: a file each; -1 is none.
std::optional<double> quota_of(const fs::path& group) {
  if (std::ifstream in(group / "cpu.max"); in) {
    double quota = 0, period = 0;
    if (in >> quota >> period && period > 0) return quota / period;
    return std::nullopt;
  }
  const std::optional<double> quota = number_in(group / "cpu.cfs_quota_us"),
                              period = number_in(group / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// Where control groups are seen: below /sys/fs/cgroup, by the lines of /proc/self/cgroup, "number:controllers:path".
// Inside of a container the path is that of the host, and the group itself is what is mounted there.
std::vector<fs::path> groups_around(const fs::path& root) {
  std::vector<fs::path> groups;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    fs::path mount = root / "sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
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

}  // namespace

int bound_processors() {
  cpu_set_t processors;
  if (::sched_getaffinity(0, sizeof(processors), &processors) != 0) return 1;
  return std::max(CPU_COUNT(&processors), 1);
}

int processor_quota(const fs::path& root) {
  std::optional<double> smallest;
  for (const fs::path& group : groups_around(root)) {
    const std::optional<double> quota = quota_of(group);
    if (quota && (!smallest || *quota < *smallest)) smallest = quota;
  }
  return smallest ? std::max(static_cast<int>(std::ceil(*smallest - 1e-9)), 1) : 0;
}

int usable_processors() {
  const int quota = processor_quota();
  return quota == 0 ? bound_processors() : std::min(bound_processors(), quota);
}

int usual_threads() {
  static const int usual = [] {
    const char* const variable = std::getenv("OMP_NUM_THREADS");
    const std::string_view text = variable == nullptr ? "" : variable;
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number > 0 ? number : usable_processors();
  }();
  return usual;
}

}  // namespace teratron
