// Cuts of a sequence that a search for the best schedule compares. The best cut depends on the whole schedule, its
// cells and its weight gradients; simulating a few dozen cuts finds one that is about as good.
#pragma once

#include <cstdint>
#include <vector>

#include "slicing/cost/cost_table.h"

namespace teratron::slicing {

struct CutLimits {
  std::int64_t fewest_tokens = 1;  // of a slice, on average; Algorithm 1's cuts do without this limit
  std::size_t most_slices = 1;
  int further = 1;  // stages after the first
  int micro_batches = 1;
};

// The cut of Algorithm 1 (slicer.h) for a pipeline with `further` stages after the first.
std::vector<std::int64_t> algorithm_1_cut(const CostTable& costs, const CutLimits& limits, int further);
// Algorithm 1's cuts for a quarter to four times limits.further, none twice. A schedule hides some stages' waiting, so
// the best number is not known in advance; fewer stages give longer slices.
std::vector<std::vector<std::int64_t>> algorithm_1_cuts(const CostTable& costs, const CutLimits& limits);

// Cuts into several slices on the table's grid, none twice: even slices, even ones with a shorter last one, slices of
// equal work, and Algorithm 1's.
std::vector<std::vector<std::int64_t>> candidate_cuts(const CostTable& costs, const CutLimits& limits);

}  // namespace teratron::slicing
