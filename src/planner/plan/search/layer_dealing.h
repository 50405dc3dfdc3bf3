// Ways to deal a model's layers over the cells of a pipeline, where the head or the memory makes equal numbers slow.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schedule.h"

namespace teratron::plan {

constexpr std::int64_t kFewStages = 3;  // a pipeline of no more is small enough to look at nearly every dealing

// Layers of each cell, in order; every cell has one or more. Layers cost alike, so the number of each stage is what
// counts: all numbers of the first stage and of the one with the head, near equal ones of more than kFewStages
// stages; the others share the rest evenly, and so do the cells of a stage, the first or the last of them taking one
// more, with up to kFewStages each stage in its own way. Equal numbers come first, none comes twice.
std::vector<std::vector<std::int64_t>> layer_dealings(std::int64_t layers, const pipeline::CellMap& map,
                                                      std::int64_t cells_of_stage);

}  // namespace teratron::plan
