#include "telemetry/trace_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace teratron {
namespace {

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string trace_of_process(int process, std::string_view name, std::span<const TraceEvent> events) {
  std::string text =
      fmt::format(R"({{"ph":"M","pid":{0},"tid":0,"name":"process_name","args":{{"name":{1}}}}},)"
                  "\n"
                  R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})",
                  process, quoted(name));
  for (const TraceEvent& event : events) {
    // Times are in microseconds; nanoseconds are what clocks give.
    fmt::format_to(std::back_inserter(text),
                   ",\n"
                   R"({{"ph":"X","pid":{},"tid":0,"name":{},"cat":{},"ts":{:.3f},"dur":{:.3f},"args":{{)",
                   process, quoted(event.name), quoted(event.category), event.start * 1e6,
                   (event.end - event.start) * 1e6);
    for (std::size_t i = 0; i < event.arguments.size(); ++i) {
      const auto& [key, value] = event.arguments[i];
      fmt::format_to(std::back_inserter(text), "{}{}:{}", i == 0 ? "" : ",", quoted(key), value);
    }
    text += "}}";
  }
  return text;
}

std::string trace_file(std::span<const std::string> processes) {
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", fmt::join(processes, ",\n"));
}

}  // namespace teratron
