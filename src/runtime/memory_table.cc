#include "runtime/memory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/host/host_memory.h"
#include "console/readable.h"
#include "console/text_table.h"

namespace teratron {
namespace {

std::string readable(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

// Of each stage, the rank that takes most; one alone where all stages take as much.
std::vector<RankMemory> largest_of_stages(std::span<const RankMemory> ranks) {
  std::map<int, RankMemory> largest;
  for (const RankMemory& rank : ranks) {
    const auto there = largest.emplace(rank.stage, rank).first;
    if (rank.total > there->second.total) there->second = rank;
  }
  std::vector<RankMemory> stages;
  for (const auto& [_, memory] : largest) stages.push_back(memory);
  const bool alike = std::ranges::all_of(stages, [&](const RankMemory& memory) {
    return memory.of_kind == stages.front().of_kind && memory.total == stages.front().total;
  });
  if (alike) stages.resize(1);
  return stages;
}

// Ranks that share a device share its memory; the first of them tells.
void require_device_memory(std::span<const RankMemory> ranks, Backend& backend, Communicator& world,
                           const MemoryAdvice& advice) {
  const std::vector<std::string> names = world.all_gather_host(backend.memory_name());
  const auto self = static_cast<std::size_t>(world.rank());
  std::int64_t needed = 0;
  int sharing = 0;
  for (std::size_t other = 0; other < ranks.size(); ++other) {
    if (names[other] != names[self]) continue;
    if (sharing++ == 0 && other != self) return;
    needed += ranks[other].total;
  }
  const std::int64_t left = backend.bytes_left();
  if (needed <= left) return;
  throw_environment_error(
      "{} of memory are needed on {}{}, which has {} left; {}", readable(needed), backend.processor(),
      sharing > 1 ? fmt::format(" by {} ranks", sharing) : "", readable(left),
      advice({.bytes = left, .ranks = sharing, .has_all_ranks = sharing == world.size(), .is_host = false}));
}

}  // namespace

std::vector<RankMemory> memory_of_ranks(const Arena& arena, const Backend& backend, int stage, Communicator& world) {
  RankMemory own{.stage = stage, .total = arena.bytes(), .beside = backend.taken_bytes()};
  for (std::size_t kind = 0; kind < kMemoryKinds.size(); ++kind) own.of_kind[kind] = arena.bytes_of(kMemoryKinds[kind]);
  return world.all_gather_host(own);
}

std::string memory_table(std::span<const RankMemory> ranks) {
  const std::vector<RankMemory> stages = largest_of_stages(ranks);
  std::vector<Align> columns(stages.size() + 1, Align::kRight);
  columns.front() = Align::kLeft;
  TextTable table(columns);
  table.heading(fmt::format("memory{}, all taken before the first step (at its fullest moment):",
                            ranks.size() > 1 ? " of a rank" : ""));
  const auto row = [&](std::string name, const auto& bytes_of) {
    std::vector<std::string> cells = {std::move(name)};
    for (const RankMemory& stage : stages) cells.push_back(readable(bytes_of(stage)));
    table.row(cells);
  };
  if (stages.size() > 1) {
    std::vector<std::string> titles = {""};
    for (const RankMemory& stage : stages) titles.push_back(fmt::format("stage {}", stage.stage));
    table.row(titles);
  }
  for (std::size_t kind = 0; kind < kMemoryKinds.size(); ++kind) {
    const auto bytes_of = [&](const RankMemory& stage) { return stage.of_kind[kind]; };
    if (std::ranges::any_of(stages, [&](const RankMemory& stage) { return bytes_of(stage) > 0; })) {
      row(std::string(name_of(kMemoryKinds[kind])), bytes_of);
    }
  }
  if (std::ranges::any_of(stages, [](const RankMemory& stage) { return stage.beside > 0; })) {
    row("libraries", [](const RankMemory& stage) { return stage.beside; });
  }
  row("total", [](const RankMemory& stage) { return stage.total + stage.beside; });
  return table.text();
}

void require_memory(std::span<const RankMemory> ranks, Backend& backend, Communicator& world, int ranks_in_this_process,
                    const MemoryAdvice& advice) {
  if (!backend.is_host_memory()) return require_device_memory(ranks, backend, world, advice);
  if (world.rank() != 0) return;
  const int here = ranks_in_this_process;
  const std::optional<std::int64_t> left = available_host_memory();
  std::int64_t needed = 0, most = 0;
  for (const RankMemory& one : ranks.first(static_cast<std::size_t>(here))) {
    needed += one.total;
    most = std::max(most, one.total);
  }
  if (!left || needed <= *left) return;
  throw_environment_error("this needs {} of memory{} and the machine has {} left; {}", readable(needed),
                          here > 1 ? fmt::format(" ({} ranks of {} at most)", here, readable(most)) : "",
                          readable(*left),
                          advice({.bytes = *left, .ranks = here, .has_all_ranks = here == world.size()}));
}

}  // namespace teratron
