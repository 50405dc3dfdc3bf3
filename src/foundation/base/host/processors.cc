#include "base/host/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/host/control_groups.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Version 2: "quota period" or "max period". Version 1: a file each; -1 is none.
std::optional<double> quota_of(const fs::path& group) {
  if (std::ifstream in(group / "cpu.max"); in) {
    double quota = 0, period = 0;
    if (in >> quota >> period && period > 0) return quota / period;
    return std::nullopt;
  }
  const std::optional<std::int64_t> quota = control_value(group / "cpu.cfs_quota_us"),
                                    period = control_value(group / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

int bound_processors() {
  cpu_set_t processors;
  if (::sched_getaffinity(0, sizeof(processors), &processors) != 0) return 1;
  return std::max(CPU_COUNT(&processors), 1);
}

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
