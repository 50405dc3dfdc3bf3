#include "telemetry/metrics_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "telemetry/metrics_reading.h"

namespace teratron {
namespace {

using Json = nlohmann::ordered_json;
// Lines by iteration and kind. "iteration" stands before "sample", "score" and "validation", which follow an update.
using Lines = std::map<std::pair<std::int64_t, std::string>, Json>;

Lines lines_of(const std::filesystem::path& path) {
  Lines lines;
  for (MetricsLine& line : read_metrics(path)) lines[{line.iteration, line.kind}] = std::move(line.values);
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

}  // namespace

MetricsComparison compare_metrics(const std::filesystem::path& a, const std::filesystem::path& b, double tolerance) {
  const Lines of_a = lines_of(a), of_b = lines_of(b);
  MetricsComparison comparison;
  for (const auto& [key, line] : of_a) {
    const auto there = of_b.find(key);
    if (there == of_b.end()) continue;
    const auto& [iteration, kind] = key;
    if (comparison.lines++ == 0) comparison.first = iteration;
    comparison.last = iteration;
    for (const auto& [metric, value] : line.items()) {
      if (comparison.first_difference || is_of_the_machine(metric) || !there->second.contains(metric)) continue;
      const Json& other = there->second[metric];
      if (are_equal(value, other, tolerance)) continue;
      comparison.first_difference = {
          .iteration = iteration, .kind = kind, .metric = metric, .a = value.dump(), .b = other.dump()};
    }
  }
  return comparison;
}

}  // namespace teratron
