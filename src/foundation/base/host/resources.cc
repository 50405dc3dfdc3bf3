#include "base/host/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Folders of the process's control groups and those around them, as far as they are visible, for a controller of
// version 1 ("cpu", "memory") and for version 2. They lie below /sys/fs/cgroup, by the lines of /proc/self/cgroup,
// "number:controllers:path". Inside a container the path is the host's, and the group is mounted at the root.
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

// Number at the beginning of a file; nullopt where there is no such file, or it says "max".
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// Value of `key` in a file of lines "key value ..".
std::optional<std::int64_t> value_of(std::string_view key, const fs::path& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key) && line.size() > key.size()) return std::stoll(line.substr(key.size()));
  }
  return std::nullopt;
}

// Quota of one control group, in processors. Version 2 has one file, "quota period" or "max period". Version 1 has a
// file for each; -1 is no quota.
std::optional<double> quota_of(const fs::path& group) {
  if (std::ifstream in(group / "cpu.max"); in) {
    double quota = 0, period = 0;
    if (in >> quota >> period && period > 0) return quota / period;
    return std::nullopt;
  }
  const std::optional<std::int64_t> quota = number_in(group / "cpu.cfs_quota_us"),
                                    period = number_in(group / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

struct MemoryFiles {
  const char *limit, *used, *droppable;  // droppable: a key of memory.stat
};
constexpr MemoryFiles kMemoryFiles[] = {{"memory.max", "memory.current", "inactive_file "},
                                        {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}};

}  // namespace

// The system refuses (EINVAL) a set with room for fewer processors than it could have, which may be more than cpu_set_t
// has room for (1,024).
std::vector<int> own_processors(int (*affinity)(pid_t, std::size_t, cpu_set_t*)) {
  constexpr std::size_t kMostSets = 1024;
  for (std::vector<cpu_set_t> sets(1); sets.size() <= kMostSets; sets.resize(2 * sets.size())) {
    const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
    if (affinity(0, bytes, sets.data()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> processors;
    for (std::size_t processor = 0; processor < 8 * bytes; ++processor) {
      if (CPU_ISSET_S(processor, bytes, sets.data())) processors.push_back(static_cast<int>(processor));
    }
    return processors;
  }
  return {};
}

int bound_processors() { return std::max(static_cast<int>(own_processors().size()), 1); }

int processor_quota(const fs::path& root) {
  std::optional<double> smallest;
  for (const fs::path& group : control_groups("cpu", root)) {
    const std::optional<double> quota = quota_of(group);
    if (quota && (!smallest || *quota < *smallest)) smallest = quota;
  }
  return smallest ? std::max(static_cast<int>(std::ceil(*smallest - 1e-9)), 1) : 0;
}

int usable_processors() {
  const int quota = processor_quota();
  return quota == 0 ? bound_processors() : std::min(bound_processors(), quota);
}

int threads_asked_for(const char* openmp_variable) {
  const std::string_view text = openmp_variable == nullptr ? "" : openmp_variable;
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr int kMost = 4096;  // the limit of --threads; more would exhaust the memory
  return number > 0 ? std::min(number, kMost) : usable_processors();
}

int usual_threads() {
  static const int usual = threads_asked_for(std::getenv("OMP_NUM_THREADS"));
  return usual;
}

std::optional<std::int64_t> available_host_memory(const fs::path& root) {
  const std::optional<std::int64_t> kibibytes = value_of("MemAvailable:", root / "proc/meminfo");
  if (!kibibytes) return std::nullopt;
  std::int64_t available = *kibibytes * 1024;
  for (const fs::path& group : control_groups("memory", root)) {
    for (const MemoryFiles& files : kMemoryFiles) {
      const std::optional<std::int64_t> limit = number_in(group / files.limit), used = number_in(group / files.used);
      if (!limit || !used) continue;
      const std::int64_t droppable = value_of(files.droppable, group / "memory.stat").value_or(0);
      available = std::clamp<std::int64_t>(*limit - (*used - droppable), 0, available);
    }
  }
  return available;
}

std::uint64_t resident_memory_bytes() {
  return 1024 * static_cast<std::uint64_t>(value_of("VmRSS:", "/proc/self/status").value_or(0));
}

// The kernel resets VmHWM at exec, and keeps getrusage's ru_maxrss: a small program would report its large parent.
std::uint64_t peak_memory_bytes() {
  return 1024 * static_cast<std::uint64_t>(value_of("VmHWM:", "/proc/self/status").value_or(0));
}

}  // namespace teratron
