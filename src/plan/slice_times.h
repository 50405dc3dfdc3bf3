// What a profile says about the slices of a sequence, and which slices it says are best.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/costs.h"
#include "pipeline/generators.h"
#include "plan/profile.h"

namespace teratron::plan {

struct SliceTimes {
  std::vector<std::int64_t> lengths;       // tokens; empty: alike, of no known length
  std::vector<pipeline::PassTimes> times;  // in a stage
};

// Slices of these lengths, one after another; together no longer than the profile's longest.
SliceTimes slice_times(const Profile& profile, std::span<const std::int64_t> lengths);

// For a schedule that takes slices: Algorithm 1 for terapipe, the balanced pairs of 1F1B order for seq1f1b. Within
// (stages - 1) / 10000 of what a whole sequence takes in a stage; in well under a second.
std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, int stages, int micro_batches);

}  // namespace teratron::plan
