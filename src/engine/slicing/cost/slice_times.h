// What a profile says about the slices of a sequence, and which slices it says are best.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/generators.h"
#include "pipeline/timing/costs.h"
#include "slicing/cost/profile.h"

namespace teratron::slicing {

// Of a schedule whose micro-batches are cut into slices of these lengths, together no longer than the profile's
// longest, at the pace that it has when so many stages are at work together as in this schedule. The schedule may have
// more or fewer stages than were measured: stage k of K then takes what the measured one does that stands at the same
// part of its pipeline. The cells of a stage share its time evenly.
pipeline::Costs slice_costs(const Profile& profile, const pipeline::Schedule& schedule,
                            std::span<const std::int64_t> lengths);
// The same of micro-batches that are cut in different ways; one cut: of all. Between numbers of sequences that were
// measured times are straight lines; beyond them they are proportional to the nearest's.
pipeline::Costs slice_costs(Profiles profiles, const pipeline::Schedule& schedule,
                            std::span<const pipeline::MicroBatchCut> cuts);

// Milliseconds of a slice of so many sequences in a stage, both passes, likewise.
double slice_milliseconds(Profiles profiles, std::size_t stage, std::int64_t sequences, std::int64_t length,
                          std::int64_t context);

// Milliseconds until the last pass of an iteration is done; the update comes on top (Profile::update).
double pipeline_milliseconds(const Profile& profile, const pipeline::Schedule& schedule,
                             std::span<const std::int64_t> lengths);

double pipeline_milliseconds(Profiles profiles, const pipeline::Schedule& schedule,
                             std::span<const pipeline::MicroBatchCut> cuts);

// The schedule that it was measured with.
pipeline::Schedule schedule_of(const MeasuredIteration& iteration, int stages);

// What the profile says of an iteration like this one: milliseconds until the last pass is done.
double predicted_milliseconds(const Profile& profile, const MeasuredIteration& iteration);

// The pace at which the profile's costs come to the iterations that it was made from; those held out are not looked at.
Pace pace_of(const Profile& profile);

// For a schedule that takes slices, terapipe or seq1f1b: the slices, on a grid of 1/256 of the sequence, that are
// simulated to be fastest of Algorithm 1's for the slowest stage at every step, of balanced pairs of 1F1B order, and of
// even ones; then each is made better by moving its boundaries while that helps. In well under a second.
std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, int stages, int micro_batches);

// The same, and after them what else may be fastest, since predictions are off by some per cent: the best of two other
// numbers of slices, and the two best even ways to cut. No two are alike.
std::vector<std::vector<std::int64_t>> likely_slicings(const Profile& profile, std::int64_t tokens,
                                                       pipeline::ScheduleKind schedule, int stages, int micro_batches);

}  // namespace teratron::slicing
