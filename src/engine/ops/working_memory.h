// Working memory of a CPU back end's threads: packed panels, tiles and sums of blocks. It grows in the first step and
// is kept (ops/cpu/scratch.h). Plans compute it from the shapes of a rank's operations, without a back end.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/backend.h"

namespace teratron {

// Largest shapes; order and repetition do not matter.
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
  std::int64_t largest_parameter = 0;  // elements in one sum of squares
  bool has_backward = false;
  bool has_tiles = false;     // the products are of weights in tiles, in whole numbers
  std::int64_t low_rank = 0;  // the largest of low-rank products that are added to the others
};

// Upper bound of the bytes that `threads` threads of a rank take, on this kind of processor. Where threads never all
// worked at once, less is taken.
std::int64_t cpu_working_bytes(const WorkShapes& work, const CpuOptions& options, int threads);

}  // namespace teratron
