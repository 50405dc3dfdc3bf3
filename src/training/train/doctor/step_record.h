// Numbers of the updates since the last good state, as each rank computed them, and their comparison with a replay.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "train/updates.h"

namespace teratron {

// Numbers of one update on one rank, which an equal update repeats bit for bit.
struct StepNumbers {
  std::int64_t iteration = 0;
  double loss = 0;                      // of the whole batch
  std::optional<double> gradient_norm;  // times the loss scale; nothing: the update did not get so far
  std::vector<StepTallies::Entry> entries;
};

// The numbers of an update that is computed, which is the executor's last step. The executor keeps tallies.
StepNumbers numbers_of(const Update& update, Executor& executor);

class StepRecord {
 public:
  // Most updates that are kept, which bounds the memory of a run without checkpoints: about 400 bytes a layer of the
  // rank for each, twice that with a sharded optimizer.
  static constexpr std::size_t kMost = 1024;

  void add(StepNumbers numbers);
  const StepNumbers* find(std::int64_t iteration) const;  // null: not kept
  void forget_until(std::int64_t iteration);

 private:
  std::deque<StepNumbers> numbers_;  // consecutive
};

// The first place in which a replay parts from the record.
struct Parting {
  std::int64_t iteration = 0;  // the first update with other numbers
  std::string what;            // "rank 1 held other bits of 'layers.0.mlp.up.weight' (and of 2 more tensors)"
  bool in_weights = false;     // that the update started from; else it is the update's own work
};

// Compares one update on all ranks, which all call it with their own numbers; the same result on all. Nothing: all
// numbers are equal.
std::optional<Parting> first_parting(Executor& executor, const StepNumbers& record, const StepNumbers& replay);

}  // namespace teratron
