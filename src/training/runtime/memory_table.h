// Planned memory of all ranks, shown and checked before they allocate it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "executor/stage/stage_plan.h"
#include "ops/backend.h"

namespace teratron {

constexpr std::array kMemoryKinds = {MemoryKind::kWeights,      MemoryKind::kGradients,     MemoryKind::kOptimizer,
                                     MemoryKind::kActivations,  MemoryKind::kPackedWeights, MemoryKind::kWorkspace,
                                     MemoryKind::kCommunication};

// Memory of a rank in bytes: by kind at the fullest moment of a step, of the whole arena, of the threads of a CPU
// (ops/working_memory.h), of a GPU's operations and of its graphs (executor/device_memory.h), of the copy that a
// checkpoint is written from (--async-save), and of libraries and communication, which have taken it already.
struct RankMemory {
  int stage = 0;
  std::array<std::int64_t, kMemoryKinds.size()> of_kind = {};
  std::int64_t arena = 0, threads = 0, scratch = 0, graphs = 0, copy = 0, beside = 0;
  std::int64_t copy_on_host = 0;  // `copy` of a rank whose other memory is a device's
  std::int64_t needed() const { return arena + threads + scratch + graphs + copy; }  // not allocated yet

  // Rows of a table beside the kinds of the arena.
  struct Other {
    const char* name;
    std::int64_t RankMemory::*bytes;
  };
  static std::span<const Other> others();
  std::int64_t total() const { return needed() + beside; }
};

// Threads of the calling rank whose CPU kernels take memory of their own; 0 on other back ends.
int computing_threads(const Backend& backend);

// Memory of every rank of the world, in order. Every rank calls it with its own plan, before its arena is allocated.
// `copy`: bytes of this rank's copy of a checkpoint.
std::vector<RankMemory> memory_of_ranks(const StagePlan& plan, const Backend& backend, Communicator& world,
                                        std::int64_t copy = 0);

// Table of the rank that needs most; of each stage, where stages differ.
std::string memory_table(std::span<const RankMemory> ranks);

// Bytes that each rank may take: the least that any has free, a host's shared out evenly. Nothing: it is not known.
// Every rank calls it.
std::optional<std::int64_t> room_of_rank(Backend& backend, Communicator& world, int ranks_in_this_process);

// Free memory of the host or of a device, for the ranks that share it.
struct MemoryRoom {
  std::int64_t bytes = 0;
  int ranks = 1;               // ranks that share it
  bool has_all_ranks = false;  // whether these are all ranks of the run
  bool is_host = true;
};
// Advice for lack of memory, as the end of a message. One rank alone calls it.
using MemoryAdvice = std::function<std::string(const MemoryRoom&)>;

// EnvironmentError: the host (with the limits of its control groups) or the rank's device has less memory left than
// planned; names both and the advice. Every rank calls it. The first of the ranks that share a memory throws.
void require_memory(std::span<const RankMemory> ranks, Backend& backend, Communicator& world, int ranks_in_this_process,
                    const MemoryAdvice& advice);

}  // namespace teratron
