#include "runtime/memory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/host/resources.h"
#include "base/host/threads.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "executor/device_memory.h"
#include "ops/working_memory.h"

namespace teratron {
namespace {

// Memory of a rank as a thread beside its plan: its stack, memory that the allocator keeps, and the measurement of its
// speed. 128 to 1024 ranks took 3.0 MiB each.
constexpr std::int64_t kOfRankThread = std::int64_t{3} << 20;

std::string readable(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

// Largest rank of each stage; a single one where all stages need the same.
std::vector<RankMemory> largest_of_stages(std::span<const RankMemory> ranks) {
  std::map<int, RankMemory> largest;
  for (const RankMemory& rank : ranks) {
    const auto there = largest.emplace(rank.stage, rank).first;
    if (rank.needed() > there->second.needed()) there->second = rank;
  }
  std::vector<RankMemory> stages;
  for (const auto& [_, memory] : largest) stages.push_back(memory);
  const bool alike = std::ranges::all_of(stages, [&](const RankMemory& memory) {
    return memory.of_kind == stages.front().of_kind && memory.needed() == stages.front().needed();
  });
  if (alike) stages.resize(1);
  return stages;
}

// EnvironmentError: the host has no room for the copy of a checkpoint whose tensors lie on a device.
void require_host_copy(std::int64_t copy) {
  const std::optional<std::int64_t> left = available_host_memory();
  if (!left || copy <= *left) return;
  throw_environment_error(
      "a copy of the checkpoint (--async-save) needs {} of the host's memory, which has {} left; leave --async-save "
      "out",
      readable(copy), readable(*left));
}

}  // namespace

std::span<const RankMemory::Other> RankMemory::others() {
  static constexpr std::array kOthers = {Other{"threads", &RankMemory::threads}, Other{"scratch", &RankMemory::scratch},
                                         Other{"graphs, about", &RankMemory::graphs},
                                         Other{"checkpoint copy", &RankMemory::copy},
                                         Other{"libraries", &RankMemory::beside}};
  return kOthers;
}

int computing_threads(const Backend& backend) { return backend.name() == "cpu" ? thread_count() : 0; }

std::vector<RankMemory> memory_of_ranks(const StagePlan& plan, const Backend& backend, Communicator& world,
                                        std::int64_t copy) {
  const Arena& arena = plan.memory().arena();
  RankMemory own{.stage = plan.cells().stage(), .arena = arena.bytes(), .beside = backend.taken_bytes()};
  (backend.is_host_memory() ? own.copy : own.copy_on_host) = copy;
  if (const int threads = computing_threads(backend); threads > 0) {
    own.threads = cpu_working_bytes(plan.work(), {.compute_dtype = backend.compute_dtype()}, threads);
  }
  if (backend.name() == "cuda") {
    const DeviceMemory device = device_memory_of(plan, backend.compute_dtype(), backend.captures_graphs());
    own.scratch = device.scratch;
    own.graphs = device.graphs;
  }
  for (std::size_t kind = 0; kind < kMemoryKinds.size(); ++kind) own.of_kind[kind] = arena.bytes_of(kMemoryKinds[kind]);
  return world.all_gather_host(own);
}

std::string memory_table(std::span<const RankMemory> ranks) {
  const std::vector<RankMemory> stages = largest_of_stages(ranks);
  std::vector<Align> columns(stages.size() + 1, Align::kRight);
  columns.front() = Align::kLeft;
  TextTable table(columns);
  table.heading(fmt::format("memory{}, all taken by the end of the first step (at its fullest moment):",
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
  for (const auto& [name, bytes] : RankMemory::others()) {
    const auto bytes_of = [bytes](const RankMemory& stage) { return stage.*bytes; };
    if (std::ranges::any_of(stages, [&](const RankMemory& stage) { return bytes_of(stage) > 0; })) row(name, bytes_of);
  }
  row("total", [](const RankMemory& stage) { return stage.total(); });
  return table.text();
}

std::optional<std::int64_t> room_of_rank(Backend& backend, Communicator& world, int ranks_in_this_process) {
  constexpr std::int64_t kUnknown = -1;
  const std::vector<std::string> memories = world.all_gather_host(backend.memory_name());
  const std::int64_t sharing = std::ranges::count(memories, memories[static_cast<std::size_t>(world.rank())]);
  const auto own = [&]() -> std::int64_t {
    if (!backend.is_host_memory()) return backend.bytes_left() / sharing;
    const std::optional<std::int64_t> left = available_host_memory();
    return left ? *left / sharing - (ranks_in_this_process > 1 ? kOfRankThread : 0) : kUnknown;
  };
  const std::int64_t least = std::ranges::min(world.all_gather_host(own()));
  return least == kUnknown ? std::nullopt : std::optional(least);
}

void require_memory(std::span<const RankMemory> ranks, Backend& backend, Communicator& world, int ranks_in_this_process,
                    const MemoryAdvice& advice) {
  const bool is_host = backend.is_host_memory();
  if (!is_host && world.rank() == 0) require_host_copy(ranks.front().copy_on_host);
  const std::vector<std::string> memories = world.all_gather_host(backend.memory_name());
  const auto self = static_cast<std::size_t>(world.rank());
  std::int64_t needed = 0, most = 0;
  int sharing = 0;
  for (std::size_t other = 0; other < ranks.size(); ++other) {
    if (memories[other] != memories[self]) continue;
    if (sharing++ == 0 && other != self) return;
    const std::int64_t of_rank = ranks[other].needed() + (is_host && ranks_in_this_process > 1 ? kOfRankThread : 0);
    needed += of_rank;
    most = std::max(most, of_rank);
  }
  const std::optional<std::int64_t> left = is_host ? available_host_memory() : std::optional(backend.bytes_left());
  if (!left || needed <= *left) return;
  const std::string remedy =
      advice({.bytes = *left, .ranks = sharing, .has_all_ranks = sharing == world.size(), .is_host = is_host});
  if (is_host) {
    throw_environment_error("this needs {} of memory{} and the machine has {} left; {}", readable(needed),
                            sharing > 1 ? fmt::format(" ({} ranks of {} at most)", sharing, readable(most)) : "",
                            readable(*left), remedy);
  }
  throw_environment_error("{} of memory are needed on {}{}, which has {} left; {}", readable(needed),
                          backend.processor(), sharing > 1 ? fmt::format(" by {} ranks", sharing) : "", readable(*left),
                          remedy);
}

}  // namespace teratron
