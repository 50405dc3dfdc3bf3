// What makes a training run fit where its memory is too little, found by planning it (memory_plan.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/memory_table.h"
#include "train/plans/memory_plan.h"

namespace teratron {

// What flags make another run of.
enum class RemedyChanges {
  kNothing,   // neither the model nor its updates
  kRounding,  // values are kept in 16 bits
  kSamples,   // shorter ones
  kModel,     // a smaller one
};

struct MemoryRemedy {
  std::string flags;
  std::int64_t bytes = 0;    // that the ranks which share the room take then
  std::int64_t devices = 1;  // times as many as now
  RemedyChanges changes = RemedyChanges::kNothing;
};

// Whether the command has this flag, written without its dashes.
using HasFlag = std::function<bool(const std::string& flag)>;

// The cheapest flags with which `config` fits into `room` and stays the same run: the best on as many devices as now,
// then, where the room is a device, the best on more of them. Cheap is what costs little time: to share out the
// optimizer's state and the residuals over the ranks, fewer copies of the model on one host, selective recompute,
// smaller micro-batches, full recompute, in this order.
std::vector<MemoryRemedy> memory_remedies(const TrainConfig& config, const MemoryPlanContext& context,
                                          const MemoryRoom& room, const HasFlag& has_flag = {});

// Those that make another run of it, at most one of each kind, each with what else it takes to fit.
std::vector<MemoryRemedy> lossy_memory_remedies(const TrainConfig& config, const MemoryPlanContext& context,
                                                const MemoryRoom& room, const HasFlag& has_flag = {});

// The end of an error message: the first kind, or where there is none the second. Every flag that it names fits.
std::string memory_advice(const TrainConfig& config, const MemoryPlanContext& context, const MemoryRoom& room,
                          const HasFlag& has_flag = {});

}  // namespace teratron
