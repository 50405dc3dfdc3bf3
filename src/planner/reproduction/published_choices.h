// Which of several published layouts of one model the cost model would have chosen.
#pragma once

#include <span>
#include <vector>

#include "reproduction/published_runs.h"
#include "reproduction/reproduction.h"

namespace teratron::plan {

// A choice for each model that one program ran in several layouts, on the same devices, with sequences of one length
// and products of one type; micro-batch, batch, recompute, sharding and offload may differ. Steps with published
// seconds are compared only with steps of the same batch.
std::vector<LayoutChoice> choices_among(std::span<const PublishedRun> runs, const RunConstants& constants);

}  // namespace teratron::plan
