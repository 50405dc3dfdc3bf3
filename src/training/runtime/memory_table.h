// What the runners of all ranks will take of the machine's memory, before they do.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "executor/stage/stage_plan.h"
#include "ops/backend.h"

namespace teratron {

constexpr std::array kMemoryKinds = {MemoryKind::kWeights,     MemoryKind::kGradients, MemoryKind::kOptimizer,
                                     MemoryKind::kActivations, MemoryKind::kWorkspace, MemoryKind::kCommunication};

// In bytes: by kind at the fullest moment of a step, of the whole arena, and what the threads of a CPU take to compute
// (ops/working_memory.h); beside it, what libraries and communication have taken of a device already.
struct RankMemory {
  int stage = 0;  // of the pipeline
  std::array<std::int64_t, kMemoryKinds.size()> of_kind = {};
  std::int64_t arena = 0, threads = 0, beside = 0;
  std::int64_t needed() const { return arena + threads; }  // what is not taken yet
  std::int64_t total() const { return needed() + beside; }
};

// Of the calling rank, where it computes on a CPU with kernels that take memory of their own; else 0.
int computing_threads(const Backend& backend);

// Of every rank of the world, in order. Every rank calls it with its own plan, before its arena is allocated.
std::vector<RankMemory> memory_of_ranks(const StagePlan& plan, const Backend& backend, Communicator& world);

// What the rank that takes most takes; of each stage, where stages differ.
std::string memory_table(std::span<const RankMemory> ranks);

// Memory that ranks together may still take: of the host, or of a device.
struct MemoryRoom {
  std::int64_t bytes = 0;
  int ranks = 1;               // that share it
  bool has_all_ranks = false;  // of the run
  bool is_host = true;
};
// What to do where they need more, as the end of a message; it is asked on one rank alone.
using MemoryAdvice = std::function<std::string(const MemoryRoom&)>;

// EnvironmentError if the machine (with the limits of control groups around the process), or the rank's device, does
// not have that much left: the plan, what is there, and what to do. Every rank calls it; of the memory of hosts the
// first one tells, of that of devices each.
void require_memory(std::span<const RankMemory> ranks, Backend& backend, Communicator& world, int ranks_in_this_process,
                    const MemoryAdvice& advice);

}  // namespace teratron
