// Runs that another run of their own table contradicts. Published values alone decide: no prediction is looked at.
#pragma once

#include <span>

#include "plan/reproduction/published_runs.h"

namespace teratron::plan {

// A run is contradicted by one of the same program, model, precision, layout and recompute that had no more to work
// with and yet was faster by more than this. No more: micro-batches of no more tokens in sequences that are no shorter,
// one of which is longer or on more devices of the same cluster; or as many cards of the same peak whose memory is
// slower.
inline constexpr double kMostOfWeakerRun = 0.10;

// The run that contradicts `run`, or none; `runs` may have `run` itself.
const PublishedRun* contradiction_of(const PublishedRun& run, std::span<const PublishedRun> runs);

}  // namespace teratron::plan
