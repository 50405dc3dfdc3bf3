// What the threads of a CPU back end take beside the memory that they are given: packed panels, tiles and sums of
// blocks. It is grown in the first step and kept (ops/cpu/scratch.h). Plans count it from the shapes of what a rank
// will compute, without a back end.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/backend.h"

namespace teratron {

// The most of everything; order and repetition do not matter.
struct WorkShapes {
  struct Product {
    std::int64_t rows, inputs, outputs;  // of a linear layer: x[rows, inputs] with weights [outputs, inputs]
    bool operator==(const Product&) const = default;
  };
  struct Attention {
    std::int64_t queries, keys, head_size;  // of one head of one sequence
    std::int64_t heads_per_key_head = 1;
    bool operator==(const Attention&) const = default;
  };
  std::vector<Product> products;
  std::vector<Attention> attentions;
  std::int64_t norm_rows = 0, norm_columns = 0;
  std::int64_t largest_parameter = 0;  // elements whose squares are summed at a time
  bool has_backward = false;
};

// The most bytes that `threads` threads of a rank take together, on this kind of processor. Where threads were never
// all at work at once, less is taken.
std::int64_t cpu_working_bytes(const WorkShapes& work, const CpuOptions& options, int threads);

}  // namespace teratron
