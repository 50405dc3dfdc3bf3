// The slices of --token-slices auto.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/generators.h"
#include "slicing/cost/profile.h"

namespace teratron::slicing {

// Slice lengths for a schedule that takes slices. `size`: its size; the number of slices in it is ignored. Candidates
// are even cuts and Algorithm 1's cuts for the slowest stage, on a grid of 1/256 of the sequence; the simulation ranks
// them. Predictions are off by one or two per cent, so a simpler cut wins a near tie: even slices whose number is no
// power of two must be predicted 1 % faster, uneven slices 2 %. Cuts with more than pipeline::kMostActions actions are
// left out.
std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, pipeline::ScheduleSize size);

}  // namespace teratron::slicing
