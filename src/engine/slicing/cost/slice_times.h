// Slices of a sequence by a measured profile: their costs, the time of a schedule, and the slices of --token-slices
// auto.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/generators.h"
#include "pipeline/timing/simulate.h"
#include "slicing/cost/profile.h"
#include "slicing/slice_costs.h"

namespace teratron::slicing {

// Contents of cells, where they are not those that were measured.
struct CellWork {
  std::vector<std::int64_t> layers;  // of each cell; empty: a stage's cells share its measured time evenly
  bool vocabulary_parallel = false;
};

// A profile's costs, undisturbed by other stages. The pipeline may have more or fewer stages than were measured: a
// stage then takes the time of the measured stage at the same part of its pipeline. Micro-batches of another size take
// time in proportion to their sequences.
class ProfileCosts : public SliceCosts {
 public:
  // Refers to the profile.
  ProfileCosts(const Profile& profile, int stages, CellWork work = {});

  int stages() const override { return stages_; }
  pipeline::PassTimes passes(int stage, const TokenSlice& slice) const override;
  pipeline::PassTimes cell_passes(const pipeline::Schedule& schedule, int cell, const TokenSlice& slice) const override;
  double message(const TokenSlice& slice) const override {
    return profile_.transfer.of(slice.length * slice.sequences);
  }

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

// 0 where one stage works at a time, 1 where all of them always do.
double together_share(const pipeline::Simulation& simulation);

// Costs at the pace of a schedule with as many stages at work together. A single cut stands for all micro-batches.
pipeline::Costs paced_costs(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts, const CellWork& work = {});

// Milliseconds until the last pass of an iteration is done, at the pace; the update is extra (Profile::update).
double pipeline_milliseconds(const Profile& profile, const pipeline::Schedule& schedule,
                             std::span<const pipeline::MicroBatchCut> cuts);

// Micro-batches of the profile's size, all cut into slices of these tokens.
std::vector<pipeline::MicroBatchCut> alike(const Profile& profile, std::span<const std::int64_t> lengths);

// The schedule that an iteration was measured with, and its predicted milliseconds until the last pass is done.
pipeline::Schedule schedule_of(const MeasuredIteration& iteration, int stages);
double predicted_milliseconds(const Profile& profile, const MeasuredIteration& iteration);

// Slice lengths for a schedule that takes slices. `size`: all but their number. Candidates are even cuts and those of
// Algorithm 1 for the slowest stage, all on a grid of 1/256 of the sequence; the simulation ranks them. Predictions are
// off by one or two per cent, so a simpler cut wins a near tie: even slices whose number is no power of two must be
// predicted 1 % faster, uneven slices 2 %.
std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, pipeline::ScheduleSize size);

}  // namespace teratron::slicing
