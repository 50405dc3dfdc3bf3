// Ways to cut a sequence that a search for the best schedule compares. The best cut follows from the whole schedule,
// its cells and its weight gradients; the simulation of a few dozen cuts finds one about as good.
#pragma once

#include <cstdint>
#include <vector>

#include "slicing/cost/cost_table.h"

namespace teratron::slicing {

struct CutLimits {
  std::int64_t fewest_tokens = 1;  // of a slice, in the mean
  std::size_t most_slices = 1;
  int further = 1;  // stages after the first
  int micro_batches = 1;
};

// The cut of Algorithm 1 (slicer.h), for so many further stages.
std::vector<std::int64_t> algorithm_1_cut(const CostTable& costs, const CutLimits& limits, int further);
// Those for fewer and for more further stages, since a schedule hides some of them. Fewer give longer slices.
std::vector<std::vector<std::int64_t>> algorithm_1_cuts(const CostTable& costs, const CutLimits& limits);

// Cuts into several slices on the table's grid, none twice: even ones, also with a shorter last one, ones of equal
// work, and Algorithm 1's.
std::vector<std::vector<std::int64_t>> candidate_cuts(const CostTable& costs, const CutLimits& limits);

}  // namespace teratron::slicing
