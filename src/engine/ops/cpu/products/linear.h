// What linear layers do to a block of sums while it is in cache (linear.cc), for one storage type.
#pragma once

#include "ops/backend.h"
#include "ops/cpu/products/gemm.h"
#include "ops/working_memory.h"

namespace teratron {

struct LinearKernels {
  void (*finish_forward)(const LinearForward& args, const GemmBlock& block, const GemmSums& sums);
  // The same of a block of y transposed: of some outputs for all rows.
  void (*finish_forward_transposed)(const LinearForward& args, const GemmBlock& block, const GemmSums& sums);
  void (*multiply_row_by_row)(const LinearForward& args, std::int64_t begin, std::int64_t end);
  void (*finish_gradient)(const LinearInputGradient& args, const GemmBlock& block, const GemmSums& sums);
  void (*sum_columns)(const LinearWeightGradient& args, std::int64_t begin, std::int64_t end);
};

// The most that a linear layer of so many rows or fewer takes, forward and, where it has one, backward.
void include_linear(const WorkShapes::Product& product, DType dtype, GemmProducts products, bool has_backward,
                    ScratchSizes& sizes);

}  // namespace teratron
