// A measured profile's costs of any slice in each stage, of all slices on a grid, and of a schedule.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/schedule.h"
#include "pipeline/timing/costs.h"
#include "slicing/cost/cost_table.h"
#include "slicing/cost/profile.h"

namespace teratron::slicing {

struct TokenSlice {
  std::int64_t sequences = 1;  // of the micro-batch
  std::int64_t length = 0;     // tokens of each sequence
  std::int64_t context = 0;    // tokens before them
};

// Contents of cells, where they are not those that were measured.
struct CellWork {
  std::vector<std::int64_t> layers;  // of each cell; empty: a stage's cells share its measured time evenly
  bool vocabulary_parallel = false;
};

// A profile's costs, undisturbed by other stages. The pipeline may have more or fewer stages than were measured: a
// stage then takes the time of the measured stage at the same part of its pipeline. Micro-batches of another size take
// time in proportion to their sequences.
class ProfileCosts {
 public:
  // Refers to the profile.
  ProfileCosts(const Profile& profile, int stages, CellWork work = {});

  int stages() const { return stages_; }
  // Milliseconds of forward and backward in a stage.
  pipeline::PassTimes passes(int stage, const TokenSlice& slice) const;
  // Milliseconds in one of the schedule's cells.
  pipeline::PassTimes cell_passes(const pipeline::Schedule& schedule, int cell, const TokenSlice& slice) const;
  // Milliseconds until a stage's output has arrived at the next stage.
  double message(const TokenSlice& slice) const { return profile_.transfer.of(slice.length * slice.sequences); }
  // Whether measured stages can be split into layers and the head: there are several, of known numbers of layers.
  bool knows_layers() const { return !measured_layers_.empty(); }
  // Time of one layer in that stage. A layer's backward in the last stage, which has the head's too, is to its forward
  // as in the other stages. The first stage's layers have the embedding's small time.
  pipeline::PassTimes layer(int stage, const TokenSlice& slice) const;
  // Time of the last stage without its layers: backward passes alone.
  pipeline::PassTimes head(const TokenSlice& slice) const;
  // Part of a stage in the joint passes: an even share of the head, and the messages of sums and broadcasts.
  pipeline::PassTimes joint_ends(const TokenSlice& slice) const;

 private:
  std::size_t measured(int stage) const;

  const Profile& profile_;
  int stages_;
  CellWork work_;
  std::vector<std::int64_t> measured_layers_;  // of each measured stage
};

// Both passes and the message in the slowest stage: sends and receives take a stage's time, too.
CostTable slowest_stage(const ProfileCosts& costs, std::int64_t sequences, std::int64_t tokens,
                        std::int64_t granularity);

// Costs of a schedule with as many stages. A single cut stands for all micro-batches.
pipeline::Costs schedule_costs(const ProfileCosts& costs, const pipeline::Schedule& schedule,
                               std::span<const pipeline::MicroBatchCut> cuts);

}  // namespace teratron::slicing
