// What processes did when, in the JSON of Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing
// draw ("Trace Event Format", the complete and metadata events).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teratron {

struct TraceEvent {
  std::string_view name, category;
  double start = 0, end = 0;  // seconds of a clock that begins anywhere
  std::vector<std::pair<std::string_view, std::int64_t>> arguments;
};

// The events of one process, which don't overlap, as a part of a file. Processes are shown in the order of their
// numbers.
std::string trace_of_process(int process, std::string_view name, std::span<const TraceEvent> events);

// As every such file begins.
inline constexpr std::string_view kTraceBeginning = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";

// A file of what trace_of_process() returned for each process.
std::string trace_file(std::span<const std::string> processes);

}  // namespace teratron
