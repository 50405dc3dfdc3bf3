// Times of operations that ranks do together, such as a sum. step_times.h has those of training steps.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace teratron {

// Seconds of each action on the slowest rank: the median of several rounds. In a round the actions take turns, each
// repeated for a few milliseconds. Every rank calls it; all return the same.
std::vector<double> collective_times(Communicator& world, std::span<const std::function<void()>> actions);

// Seconds of the sum of `bytes` bytes of f32 over the ranks, in place.
double all_reduce_seconds(Communicator& world, std::int64_t bytes);

}  // namespace teratron
