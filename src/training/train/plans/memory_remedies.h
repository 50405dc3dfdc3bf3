// Flags that make a training run fit where memory is short, found by planning it (memory_plan.h).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/memory_table.h"
#include "train/plans/memory_plan.h"

namespace teratron {

struct MemoryRemedy {
  std::string flags;
  std::int64_t bytes = 0;     // of the ranks that share the room
  bool keeps_values = true;   // false: rounds to 16 bits
  bool keeps_samples = true;  // false: shortens them
};

// Whether the command has this flag, written without its dashes.
using HasFlag = std::function<bool(const std::string& flag)>;

// The cheapest flags with which `config` fits into `room`, none of them superfluous. Flags are tried in the order of
// the time that they cost: to share the optimizer's state and the residuals between ranks, saves that wait, fewer
// copies of the model on one host, selective recompute, smaller micro-batches, full recompute; then those that change
// the run: 16 bits, shorter samples. Nothing: no such flags fit.
std::optional<MemoryRemedy> memory_remedy(const TrainConfig& config, const MemoryPlanContext& context,
                                          const MemoryRoom& room, const HasFlag& has_flag = {});

// The remedy as the end of an error message.
std::string memory_advice(const TrainConfig& config, const MemoryPlanContext& context, const MemoryRoom& room,
                          const HasFlag& has_flag = {});

}  // namespace teratron
