// Event files of TensorBoard: curves and texts over steps.
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
  // Whether a resumed run keeps an earlier record, by its step and the tag of its first value.
  using Keeps = std::function<bool(std::int64_t step, std::string_view tag)>;

  // Begins a file in `folder`, which is made if missing, after the files there. In files of earlier TensorBoardLogs it
  // drops records that `keeps` rejects, and torn ones. EnvironmentError.
  //
  // A SessionLog.START record, with which TensorBoard itself hides later records, has one step for all tags: curves
  // over samples would vanish with those over iterations.
  TensorBoardLog(const std::filesystem::path& folder, const Keeps& keeps);

  // Record: points of several curves at one step.
  struct Points {
    std::int64_t step = 0;
    std::vector<std::pair<std::string, float>> values;
  };
  // Writes records of one moment together.
  void scalars(std::vector<Points> points, double wall_time = wall_seconds());

  void text(std::int64_t step, const std::string& tag, const std::string& text);

  // Whether `folder` holds files of a TensorBoardLog.
  static bool holds_records(const std::filesystem::path& folder);

 private:
  std::optional<AppendedFile> file_;
};

}  // namespace teratron
