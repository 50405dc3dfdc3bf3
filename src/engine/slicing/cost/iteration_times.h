// Whole iterations by a measured profile: their times at the pace of stages that work together, and what measured
// iterations say of that pace.
#pragma once

#include <span>
#include <vector>

#include "pipeline/timing/simulate.h"
#include "slicing/cost/profile.h"
#include "slicing/cost/profile_costs.h"

namespace teratron::slicing {

// 0 where one stage works at a time, 1 where all of them always do.
double together_share(const pipeline::Simulation& simulation);

// A schedule's costs, at the pace of as many stages as it keeps at work. A single cut stands for all micro-batches.
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

// The pace that makes the profile's costs fit its iterations, without those held out.
Pace pace_of(const Profile& profile);

struct IterationFit {
  double beside_pass = 0;  // milliseconds of a stage beside each of its passes: handing slices over, waking up
  Pace pace;               // with that time counted
  double error = 0;        // mean over all iterations of |predicted over measured - 1|
};

// The least error by far where short passes are many and cores are busy; else nearly pace_of(). The profile's own pace
// where it has no iterations.
IterationFit fit_iterations(const Profile& profile);

// Costs whose passes all take so much longer.
void add_to_passes(pipeline::Costs& costs, double milliseconds);

}  // namespace teratron::slicing
