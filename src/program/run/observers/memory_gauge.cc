#include "run/observers/memory_gauge.h"

#include <algorithm>
#include <utility>

#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"

namespace teratron {
namespace {

constexpr double kBetweenMeasurements = 0.1;  // seconds

}  // namespace

std::int64_t MemoryGauge::fullest(std::int64_t iteration) {
  const double now = monotonic_seconds();
  const bool is_first = iteration_ < 0;
  if (std::exchange(iteration_, iteration) == iteration) return last_;
  if (is_first || now - measured_at_ >= kBetweenMeasurements) {
    last_ = measured();
    measured_at_ = now;
  }
  return last_;
}

std::int64_t MemoryGauge::measured() const {
  if (!own_.is_host_memory()) return own_.taken_bytes();
  std::int64_t most = static_cast<std::int64_t>(resident_memory_bytes()) / ranks_here_;
  for (const RankReport& report : board_.reports()) most = std::max(most, report.memory);
  return most;
}

}  // namespace teratron
