#include "telemetry/metrics_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/metrics_reading.h"

namespace teratron {
namespace {

using Json = nlohmann::ordered_json;
// Lines by iteration and kind, in their order: each prompt has a sample. "iteration" stands before "sample", "score"
// and "validation", which follow an update.
using Lines = std::map<std::pair<std::int64_t, std::string>, std::vector<Json>>;

Lines lines_of(const std::filesystem::path& path) {
  constexpr const char* kUpdate = "iteration";
  Lines lines;
  std::int64_t last = 0;
  for (MetricsLine& line : read_metrics(path)) {
    const std::pair update(line.iteration, std::string(kUpdate));
    const bool is_update = line.kind == kUpdate;
    // A log that goes back is of a run that resumed there: the later lines of an iteration count.
    if (line.iteration < last || (is_update && lines.contains(update))) {
      lines.erase(is_update ? lines.lower_bound(update) : lines.upper_bound(update), lines.end());
    }
    last = line.iteration;
    lines[{line.iteration, std::move(line.kind)}].push_back(std::move(line.values));
  }
  return lines;
}

bool is_of_the_machine(std::string_view metric) {
  return metric == "seconds" || metric == "tokens_per_second" || metric == "mfu" || metric.ends_with("memory_bytes");
}

bool are_equal(const Json& a, const Json& b, double tolerance) {
  if (tolerance == 0 || !a.is_number() || !b.is_number()) return a == b;
  const auto x = a.get<double>(), y = b.get<double>();
  return std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
}

std::optional<MetricDifference> difference_of(const Json& a, const Json& b, double tolerance) {
  for (const auto& [metric, value] : a.items()) {
    if (is_of_the_machine(metric) || !b.contains(metric) || are_equal(value, b[metric], tolerance)) continue;
    return MetricDifference{.metric = metric, .a = value.dump(), .b = b[metric].dump()};
  }
  return std::nullopt;
}

}  // namespace

MetricsComparison compare_metrics(const std::filesystem::path& a, const std::filesystem::path& b, double tolerance) {
  const Lines of_a = lines_of(a), of_b = lines_of(b);
  MetricsComparison comparison;
  for (const auto& [key, lines] : of_a) {
    const auto there = of_b.find(key);
    if (there == of_b.end()) continue;
    const auto& [iteration, kind] = key;
    if (comparison.lines == 0) comparison.first = iteration;
    comparison.last = iteration;
    const std::size_t count = std::min(lines.size(), there->second.size());
    comparison.lines += static_cast<std::int64_t>(count);
    for (std::size_t i = 0; i < count && !comparison.first_difference; ++i) {
      comparison.first_difference = difference_of(lines[i], there->second[i], tolerance);
      if (!comparison.first_difference) continue;
      comparison.first_difference->iteration = iteration;
      comparison.first_difference->kind = kind;
    }
  }
  return comparison;
}

}  // namespace teratron
