// Slicers: cut a sequence into slices of tokens so that a pipeline finishes soonest (TeraPipe, arXiv 2102.07988,
// sections 3.3 and 3.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "slicing/cost/cost_table.h"

namespace teratron::slicing {

struct SlicerOptions {
  int stages = 1;         // K
  int micro_batches = 1;  // M, all cut alike, one after another
  double epsilon = 0.1;   // milliseconds: results are within (K - 1) * epsilon of the best there is
};

struct Slicing {
  std::vector<std::int64_t> lengths;  // tokens, first slice first
  double sum = 0, longest = 0;        // milliseconds: of all slices, and of the one that takes longest
  double time = 0;                    // M * sum + (K - 1) * longest
  int solves = 0;                     // dynamic programs that were solved
};

// Algorithm 1. A slice's cost is that of its forward and backward together. Each dynamic program takes O(intervals^2).
Slicing best_slicing(const CostTable& costs, const SlicerOptions& options);

// A batch in parts of one or more sequences. Each part is cut into slices in its own way.
struct JointSlicing {
  struct Part {
    int sequences = 0;
    std::vector<std::int64_t> lengths;
  };
  std::vector<Part> parts;  // their sequences add up to the batch; most sequences first
  double sum = 0, longest = 0, time = 0;
  int solves = 0;
};

// Micro-batches and their slices together (section 3.4). costs[b - 1]: costs of slices of b sequences, for b up to the
// most that a part may have; all tables have the same boundaries. `batch`: sequences of all parts; 0: costs.size().
// For every bound on the longest slice, this solves Algorithm 1's program for each b and a knapsack over the b. The
// paper adds up the parts' times, each with its own longest slice. Counting only the longest slice of all, as here, is
// exact.
JointSlicing best_joint_slicing(std::span<const CostTable> costs, const SlicerOptions& options, std::size_t batch = 0);

}  // namespace teratron::slicing
