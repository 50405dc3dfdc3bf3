// Times of a schedule's actions, in milliseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

struct PassTimes {
  double forward = 0;
  double backward = 0;  // whole
  double backward_input = 0, backward_weight = 0;
  // A stage's part of the joint passes of a slice.
  double embedding = 0, head = 0, embedding_backward = 0;

  double of(Pass pass) const;
  // A backward that its parts share out evenly, as they share the multiplications of linear layers.
  static PassTimes even_parts(double forward, double backward);
  PassTimes times(double factor) const;  // everything takes that much longer
  PassTimes plus(const PassTimes& other) const;
};

struct Costs {
  // [cell][column], one for each slice that costs something of its own.
  std::vector<std::vector<PassTimes>> passes;
  std::vector<double> transfers;                // [column]: from the end of a pass until the next stage has its result
  std::vector<std::size_t> first_columns = {};  // of each micro-batch's slices; empty: all have the same, from 0

  std::size_t column(int micro_batch, int slice) const {
    const std::size_t first = first_columns.empty() ? 0 : first_columns[static_cast<std::size_t>(micro_batch)];
    return first + static_cast<std::size_t>(slice);
  }
  double of(const Schedule& schedule, int stage, const Action& action) const;
  double transfer(int micro_batch, int slice) const { return transfers[column(micro_batch, slice)]; }
};

// `forward` and `backward` of a whole micro-batch, shared out over slices by their length (no lengths: evenly).
std::vector<PassTimes> even_times(int slices, std::span<const std::int64_t> slice_tokens, double forward,
                                  double backward);

// Stages alike: `slices_of(m)` are the times in a whole stage of micro-batch m's slices. `differ`: micro-batches have
// times of their own; else all have the first one's.
Costs costs_of_each(const Schedule& schedule, bool differ,
                    const std::function<std::vector<PassTimes>(int micro_batch)>& slices_of, double transfer = 0);

// Stages alike: `slices[s]` is what slice s takes in a whole stage, which its chunks share out evenly.
Costs sliced_costs(const Schedule& schedule, std::span<const PassTimes> slices, double transfer = 0);

// Stages and slices alike: `forward` and `backward` of a whole micro-batch in a whole stage.
Costs even_costs(const Schedule& schedule, double forward, double backward, double transfer = 0);

}  // namespace teratron::pipeline
