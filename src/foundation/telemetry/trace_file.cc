#include "telemetry/trace_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_string.h"

namespace teratron {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& event) { return json_text(event); }

// Rounds to nanoseconds, the resolution of clocks.
double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

}  // namespace

std::string trace_of_process(int process, std::string_view name, std::span<const TraceEvent> events) {
  const auto metadata = [&](const char* what, const char* key, const Json& value) {
    return line_of({{"ph", "M"}, {"pid", process}, {"tid", 0}, {"name", what}, {"args", {{key, value}}}});
  };
  std::string text =
      metadata("process_name", "name", name) + ",\n" + metadata("process_sort_index", "sort_index", process);
  for (const TraceEvent& event : events) {
    Json arguments = Json::object();
    for (const auto& [key, value] : event.arguments) arguments[std::string(key)] = value;
    text += ",\n" + line_of({{"ph", "X"},
                             {"pid", process},
                             {"tid", 0},
                             {"name", event.name},
                             {"cat", event.category},
                             {"ts", microseconds(event.start)},
                             {"dur", microseconds(event.end - event.start)},
                             {"args", arguments}});
  }
  return text;
}

std::string trace_file(std::span<const std::string> processes) {
  return fmt::format("{}\n{}\n]}}\n", kTraceBeginning, fmt::join(processes, ",\n"));
}

}  // namespace teratron
