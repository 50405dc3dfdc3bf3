// Comparison of two runs by their metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace teratron {

struct MetricDifference {
  std::int64_t iteration = 0;
  std::string kind, metric;  // "iteration", "loss"
  std::string a, b;          // the values, as the files spell them
};

struct MetricsComparison {
  std::int64_t lines = 0;            // of an iteration and kind that both files have
  std::int64_t first = 0, last = 0;  // iterations of these; 0: there are none
  std::optional<MetricDifference> first_difference;
};

// Compares the lines of one iteration and kind, one by one in their order (there are several samples), by all metrics
// that both have, but for times (seconds, tokens_per_second, mfu) and memory. Where a log goes back, as of a run that
// resumed, its later lines count. `tolerance`: numbers are equal if they differ by at most this share of the larger
// one; 0: bit for bit. A torn last line is left out. UserError: a file is missing, or holds something else.
MetricsComparison compare_metrics(const std::filesystem::path& a, const std::filesystem::path& b, double tolerance = 0);

}  // namespace teratron
