// Timelines of processes as JSON of Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing draw
// ("Trace Event Format", complete and metadata events).
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
  double start = 0, end = 0;  // seconds of any clock
  std::vector<std::pair<std::string_view, std::int64_t>> arguments;
};

// Part of a file: the events of one process, which do not overlap. Processes are shown in the order of their numbers.
std::string trace_of_process(int process, std::string_view name, std::span<const TraceEvent> events);

// Beginning of every such file.
inline constexpr std::string_view kTraceBeginning = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";

// File of the parts that trace_of_process() returned for each process.
std::string trace_file(std::span<const std::string> processes);

}  // namespace teratron
