// Where to cut a sequence into slices of tokens so that a pipeline is done with it soonest (TeraPipe, arXiv 2102.07988,
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
  int solves = 0;                     // dynamic programmes that it took
};

// Costs of a slice are those of forward and backward together. O(intervals^2) a programme.
Slicing best_slicing(const CostTable& costs, const SlicerOptions& options);

// Of a batch: so many sequences at a time, each time cut into slices in its own way.
struct JointSlicing {
  struct Part {
    int sequences = 0;
    std::vector<std::int64_t> lengths;
  };
  std::vector<Part> parts;  // their sequences add up to the batch; most sequences first
  double sum = 0, longest = 0, time = 0;
  int solves = 0;
};

// costs[b - 1]: of slices of b sequences at once, for b up to the most that a part may have; all with the same
// boundaries. `batch`: sequences of all parts; 0: as many as there are costs. For every
// bound on the longest slice, Algorithm 1's programme for each b and a knapsack over the b. The paper adds up times
// that each contain its own longest slice; counting the longest one once, as here, is exact.
JointSlicing best_joint_slicing(std::span<const CostTable> costs, const SlicerOptions& options, std::size_t batch = 0);

// For 1F1B order (Seq1F1B), where a stage takes turns: the forward of slice i stands beside the backward of slice
// k - i + 1 of the micro-batch before, and what every further stage adds is the longest such pair:
//   time = M * sum_i (F_i + B_i) + (K - 1) * max_i (F_i + B_(k - i + 1)).
// `longest` of the result is that pair. Slices are chosen two at a time, from both ends inwards: O(intervals^4) in the
// worst case, so take intervals of 1/64 or 1/128 of the sequence.
Slicing best_pair_slicing(const CostTable& forward, const CostTable& backward, const SlicerOptions& options);

}  // namespace teratron::slicing
