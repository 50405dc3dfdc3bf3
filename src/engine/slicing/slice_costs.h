// Costs of a slice of tokens in each stage of a pipeline, such as a measured profile's (cost/slice_times.h).
#pragma once

#include <cstdint>
#include <span>

#include "pipeline/schedule.h"
#include "pipeline/timing/costs.h"
#include "slicing/cost/cost_table.h"

namespace teratron::slicing {

struct TokenSlice {
  std::int64_t sequences = 1;  // of the micro-batch
  std::int64_t length = 0;     // tokens of each sequence
  std::int64_t context = 0;    // tokens before them
};

class SliceCosts {
 public:
  virtual ~SliceCosts() = default;
  virtual int stages() const = 0;
  // Milliseconds of forward and backward in a stage.
  virtual pipeline::PassTimes passes(int stage, const TokenSlice& slice) const = 0;
  // Milliseconds in one of the schedule's cells. Here the cells of a stage share its time evenly.
  virtual pipeline::PassTimes cell_passes(const pipeline::Schedule& schedule, int cell, const TokenSlice& slice) const {
    return passes(schedule.stage_of(cell), slice).times(1.0 / schedule.virtual_stages);
  }
  // Milliseconds until a stage's output has arrived at the next stage.
  virtual double message(const TokenSlice& slice) const = 0;
};

// Both passes and the message in the slowest stage: sends and receives take a stage's time, too.
CostTable slowest_stage(const SliceCosts& costs, std::int64_t sequences, std::int64_t tokens, std::int64_t granularity);

// Costs of a schedule with as many stages. A single cut stands for all micro-batches.
pipeline::Costs schedule_costs(const SliceCosts& costs, const pipeline::Schedule& schedule,
                               std::span<const pipeline::MicroBatchCut> cuts);

}  // namespace teratron::slicing
