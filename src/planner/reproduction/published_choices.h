// Which of several published layouts of one model the cost model would have chosen.
#pragma once

#include <span>
#include <vector>

#include "reproduction/published_runs.h"
#include "reproduction/reproduction.h"

namespace teratron::plan {

// One for each model of which the runs have several layouts by the same program on the same devices, with sequences of
// the same length and products of the same type; micro-batch, batch, recompute, sharding and offload may differ. Steps
// of which the seconds were published are compared at one batch.
std::vector<LayoutChoice> choices_among(std::span<const PublishedRun> runs, const RunConstants& constants);

}  // namespace teratron::plan
