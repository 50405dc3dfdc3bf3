// Reading of metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace teratron {

struct MetricsLine {
  std::int64_t iteration = 0;
  std::string kind;  // "iteration", "validation", "score", "sample"; lines of older runs get theirs
  nlohmann::ordered_json values;
};

// Lines in the order of the file. A torn last line is left out, and all from the first zero byte on, as by
// MetricsLog. UserError: the file is missing, or holds something else.
std::vector<MetricsLine> read_metrics(const std::filesystem::path& path);

}  // namespace teratron
