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

// For a schedule that takes slices; in well under a second. terapipe: Algorithm 1, within (stages - 1) / 10000 of what
// a whole sequence takes in a stage. seq1f1b: whichever is simulated to be fastest of the balanced pairs of 1F1B order
// and of Algorithm 1's slices for pipelines from a quarter to four times as long. Pairs alone are not enough: they
// stand beside one another at one stage, and at every other one by one slice or more off.
std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, int stages, int micro_batches);

}  // namespace teratron::plan
