// Event files that TensorBoard shows: curves over steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "telemetry/appended_file.h"
#include "telemetry/event_record.h"

namespace teratron {

class TensorBoardLog {
 public:
  // Whether the record at `step` whose first value has this tag is one of the run that goes on.
  using Keeps = std::function<bool(std::int64_t step, std::string_view tag)>;

  // Begins a file in `folder`, which is made if it is missing, after the files that are there. Of those that a
  // TensorBoardLog has written, records that `keeps` refuses are dropped, and so is what a crash cut short.
  //
  // TensorBoard itself would hide them by a SessionLog.START record, or where steps go back. But the first drops what
  // stands at larger steps under all tags alike, so curves over samples would go with those over iterations; and not
  // all its readers do the second. EnvironmentError.
  TensorBoardLog(const std::filesystem::path& folder, const Keeps& keeps);

  // Points of several curves at one step: a record.
  struct Points {
    std::int64_t step = 0;
    std::vector<std::pair<std::string, float>> values;
  };
  // Of one moment, written at one go.
  void scalars(std::vector<Points> points, double wall_time = wall_seconds());

  void text(std::int64_t step, const std::string& tag, const std::string& text);

  std::int64_t dropped_records() const { return dropped_records_; }

  // Whether a TensorBoardLog has written here.
  static bool holds_records(const std::filesystem::path& folder);

 private:
  std::int64_t dropped_records_ = 0;
  std::optional<AppendedFile> file_;
};

}  // namespace teratron
