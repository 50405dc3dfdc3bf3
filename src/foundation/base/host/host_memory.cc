#include "base/host/host_memory.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "base/host/control_groups.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Of a file of lines "key value ..".
std::optional<std::int64_t> value_of(std::string_view key, const fs::path& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key) && line.size() > key.size()) return std::stoll(line.substr(key.size()));
  }
  return std::nullopt;
}

struct LimitFiles {
  const char *limit, *used, *droppable;  // the last is a key of memory.stat
};
constexpr LimitFiles kVersions[] = {{"memory.max", "memory.current", "inactive_file "},
                                    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}};

}  // namespace

std::optional<std::int64_t> available_host_memory(const fs::path& root) {
  const std::optional<std::int64_t> kibibytes = value_of("MemAvailable:", root / "proc/meminfo");
  if (!kibibytes) return std::nullopt;
  std::int64_t available = *kibibytes * 1024;
  for (const fs::path& group : control_groups("memory", root)) {
    for (const LimitFiles& files : kVersions) {
      const std::optional<std::int64_t> limit = control_value(group / files.limit),
                                        used = control_value(group / files.used);
      if (!limit || !used) continue;
      const std::int64_t droppable = value_of(files.droppable, group / "memory.stat").value_or(0);
      available = std::clamp<std::int64_t>(*limit - (*used - droppable), 0, available);
    }
  }
  return available;
}

}  // namespace teratron
