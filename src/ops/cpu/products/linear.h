// What linear layers do to a block of sums while it is in cache (linear.cc), for one storage type.
#pragma once

#include "ops/backend.h"
#include "ops/cpu/products/gemm.h"

namespace teratron {

struct LinearKernels {
  void (*finish_forward)(const LinearForward& args, const GemmBlock& block, const GemmSums& sums);
  // The same of a block of y transposed: of some outputs for all rows.
  void (*finish_forward_transposed)(const LinearForward& args, const GemmBlock& block, const GemmSums& sums);
  void (*multiply_row_by_row)(const LinearForward& args, std::int64_t begin, std::int64_t end);
  void (*finish_gradient)(const LinearInputGradient& args, const GemmBlock& block, const GemmSums& sums);
  void (*sum_columns)(const LinearWeightGradient& args, std::int64_t begin, std::int64_t end);
};

}  // namespace teratron
