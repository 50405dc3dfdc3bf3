// Slices of a sequence by a measured profile: their costs, the time of a schedule, and the slices of --token-slices
// auto.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/generators.h"
#include "slicing/cost/profile.h"
#include "slicing/slice_costs.h"

namespace teratron::slicing {

// A profile's costs, undisturbed by other stages. The pipeline may have more or fewer stages than were measured: a
// stage then takes the time of the measured stage at the same part of its pipeline. Micro-batches of another size take
// time in proportion to their sequences.
class ProfileCosts : public SliceCosts {
 public:
  ProfileCosts(const Profile& profile, int stages) : profile_(profile), stages_(stages) {}  // refers to it

  int stages() const override { return stages_; }
  pipeline::PassTimes passes(int stage, const TokenSlice& slice) const override;
  double message(const TokenSlice& slice) const override {
    return profile_.transfer.of(slice.length * slice.sequences);
  }

 private:
  const Profile& profile_;
  int stages_;
};

// Costs at the pace of a schedule with as many stages at work together. A single cut stands for all micro-batches.
pipeline::Costs paced_costs(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts);

// Milliseconds until the last pass of an iteration is done, at the pace; the update is extra (Profile::update).
double pipeline_milliseconds(const Profile& profile, const pipeline::Schedule& schedule,
                             std::span<const pipeline::MicroBatchCut> cuts);

// Micro-batches of the profile's size, all cut into slices of these tokens.
std::vector<pipeline::MicroBatchCut> alike(const Profile& profile, std::span<const std::int64_t> lengths);

// The schedule that an iteration was measured with, and its predicted milliseconds until the last pass is done.
pipeline::Schedule schedule_of(const MeasuredIteration& iteration, int stages);
double predicted_milliseconds(const Profile& profile, const MeasuredIteration& iteration);

// The pace that makes the profile's costs fit its iterations, without those held out.
Pace pace_of(const Profile& profile);

// Slice lengths for a schedule that takes slices. `size`: all but their number. Candidates are even cuts and those of
// Algorithm 1 for the slowest stage, all on a grid of 1/256 of the sequence; the simulation ranks them. Predictions are
// off by one or two per cent, so a simpler cut wins a near tie: even slices whose number is no power of two must be
// predicted 1 % faster, uneven slices 2 %.
std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, pipeline::ScheduleSize size);

}  // namespace teratron::slicing
