// Times of operations that ranks do together, such as a sum (step_times.h: of training).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace teratron {

// Seconds of each action, from the first to the last rank: the median of some rounds, in which the actions take turns,
// each as often as it takes for a few milliseconds. Every rank calls it, and gets the same.
std::vector<double> collective_times(Communicator& world, std::span<const std::function<void()>> actions);

// Seconds of the sum of `bytes` bytes of f32 over the ranks, in place.
double all_reduce_seconds(Communicator& world, std::int64_t bytes);

}  // namespace teratron
