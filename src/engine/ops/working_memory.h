// Working memory of back ends, planned from the shapes of a rank's operations, without a back end. A CPU's threads keep
// packed panels, tiles and sums of blocks, in memory that grows in the first step (ops/cpu/scratch.h). A GPU's
// operations pass results between their kernels, in memory that is taken before the first step
// (Backend::reserve_scratch).
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
  std::int64_t norm_rows = 0, norm_columns = 0;  // of the residual stream
  std::int64_t attention_rows = 0;               // rows of all heads of a call
  std::int64_t activated_columns = 0;            // of a row in a linear layer's activation
  std::int64_t largest_parameter = 0;            // elements in one sum of squares
  std::int64_t parameters = 0;                   // whose squares are summed in one call
  bool has_backward = false;
  bool has_tiles = false;     // the products are of weights in tiles, in whole numbers
  std::int64_t low_rank = 0;  // largest rank of the low-rank products that are added to the others; 0: none
};

// Upper bound of the bytes that `threads` threads of a rank take, on this kind of processor. A thread that never worked
// takes none.
std::int64_t cpu_working_bytes(const WorkShapes& work, const CpuOptions& options, int threads);

// How long a packed weight is used: for one step, whose time includes packing it, or for all calls of a program.
enum class PackedFor { kStep, kAllCalls };

// Bytes of a weight [outputs, inputs] that is packed for one of its products (Backend::pack_weight), whose calls have
// at most product.rows rows. 0: such calls are faster with the weight as it is.
std::int64_t packed_weight_bytes(const WorkShapes::Product& product, WeightProduct use, const CpuOptions& options,
                                 PackedFor time = PackedFor::kStep);

// Upper bound of the bytes that operations of a CUDA back end pass between their kernels. Timing of products takes more
// for a moment where that is free, and cuDNN has workspaces of its own.
std::int64_t gpu_scratch_bytes(const WorkShapes& work, DType compute_dtype);

}  // namespace teratron
