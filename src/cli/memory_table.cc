#include "cli/memory_table.h"

#include <fmt/format.h>

#include <fstream>

#include "telemetry/readable.h"
#include "telemetry/text_table.h"

namespace teratron {
namespace {

// MemAvailable of /proc/meminfo, or 0 where the system does not say.
std::uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;) {
    std::uint64_t kibibytes = 0;
    if (key == "MemAvailable:" && info >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

std::string readable(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

}  // namespace

std::string memory_table(const Arena& arena) {
  TextTable table({Align::kLeft, Align::kRight});
  table.heading("memory, all taken before the first step (at its fullest moment):");
  for (const MemoryKind kind : {MemoryKind::kWeights, MemoryKind::kGradients, MemoryKind::kOptimizer,
                                MemoryKind::kActivations, MemoryKind::kWorkspace, MemoryKind::kCommunication}) {
    if (const std::int64_t bytes = arena.bytes_of(kind); bytes > 0) {
      table.row({std::string(name_of(kind)), readable(bytes)});
    }
  }
  table.row({"total", readable(arena.bytes())});
  return table.text();
}

void require_memory(const Arena& arena, std::int64_t ranks) {
  const std::uint64_t available = available_memory();
  const std::int64_t needed = arena.bytes() * ranks;
  if (available == 0 || static_cast<std::uint64_t>(needed) <= available) return;
  throw_environment_error(
      "this needs {} of memory{} and the machine has {} left; use a smaller --micro-batch-size, --seq-length or model",
      readable(needed), ranks > 1 ? fmt::format(" ({} ranks of {})", ranks, readable(arena.bytes())) : "",
      readable_bytes(available));
}

}  // namespace teratron
