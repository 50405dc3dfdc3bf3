// Micro-batches and their slices chosen together (TeraPipe, arXiv 2102.07988, section 3.4), by profiles of
// micro-batches of several sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/generators.h"
#include "slicing/cost/profile.h"

namespace teratron::slicing {

// Sizes that are measured: 1, 2, 4, .. and `most`.
std::vector<std::int64_t> sizes_to_measure(std::int64_t most);

// Ways to cut `sequences` sequences of so many tokens into micro-batches, of as many sequences at most as the last
// profile's, and each of these into slices, for terapipe or seq1f1b. The one that is simulated to be fastest comes
// first; then what may be fastest in truth, the best even cut among it. All ways name every micro-batch, most sequences
// first; no two are alike.
std::vector<std::vector<pipeline::MicroBatchCut>> likely_cuts(Profiles profiles, std::int64_t tokens,
                                                              pipeline::ScheduleKind schedule, int stages,
                                                              std::int64_t sequences);

}  // namespace teratron::slicing
