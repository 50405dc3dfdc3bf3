// metrics.jsonl: one JSON object per line, which any tool can follow while a run goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "telemetry/appended_file.h"

namespace teratron {

using MetricValue = std::variant<std::int64_t, double, std::string>;
using Metric = std::pair<std::string_view, MetricValue>;

class MetricsLog {
 public:
  // Opens `path` to append to; its folder must exist. `iteration`: where the run resumes. Drops later lines, a torn
  // last line, and lines of `iteration` that contain a key of `unwanted`. UserError: the file holds something else.
  // EnvironmentError: it cannot be written.
  MetricsLog(std::filesystem::path path, std::int64_t iteration, std::vector<std::string> unwanted = {});

  // Appends {"iteration": ..., metrics in this order}. On return the line is in the file. Doubles read back exactly;
  // those that are not finite become null. EnvironmentError.
  void write(std::int64_t iteration, const std::vector<Metric>& metrics);

  std::int64_t dropped_lines() const { return dropped_lines_; }

 private:
  std::int64_t dropped_lines_ = 0;
  std::optional<AppendedFile> file_;
};

}  // namespace teratron
