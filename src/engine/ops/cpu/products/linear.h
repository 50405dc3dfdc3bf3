// Linear layers on the CPU (linear.cc): how they finish a block of sums while it is in cache, and which rows they
// compute.
#pragma once

#include <span>
#include <vector>

#include "ops/backend.h"
#include "ops/cpu/products/gemm.h"
#include "ops/working_memory.h"

namespace teratron {

// Functions for one storage type.
struct LinearKernels {
  void (*finish_forward)(const FrozenLinearForward& args, const GemmBlock& block, const GemmSums& sums);
  // Takes a block of y transposed: some outputs for all rows.
  void (*finish_forward_transposed)(const FrozenLinearForward& args, const GemmBlock& block, const GemmSums& sums);
  // Converts rows [begin, end) of x for multiply_rows(). Null: it takes them where they are.
  void (*widen_rows)(const TensorRef& x, std::int64_t begin, std::int64_t end, float* widened) = nullptr;
  // Computes a block of y from its rows of x. A row's bits do not depend on the rows beside it.
  void (*multiply_rows)(const FrozenLinearForward& args, const void* x, const GemmBlock& block);
  void (*finish_gradient)(const FrozenLinearInputGradient& args, const GemmBlock& block, const GemmSums& sums);
  void (*sum_columns)(const LinearWeightGradient& args, std::int64_t begin, std::int64_t end);
};

// Rows with text; neighbouring sequences share a range. Without lengths, all rows.
std::vector<GemmRange> text_ranges(const TensorRef& lengths, std::int64_t rows);

// Clears the rows of `view` between the ranges; does nothing without a view.
void clear_padding(const TensorRef& view, std::span<const GemmRange> ranges);

// Includes the scratch memory of a linear layer of at most so many rows, forward and, with has_backward, backward.
void include_linear(const WorkShapes::Product& product, DType dtype, bool bf16_products, bool has_backward,
                    ScratchSizes& sizes);
// Includes the scratch memory of low-rank products that are added to a linear layer's.
void include_low_rank(std::int64_t rows, std::int64_t rank, DType dtype, bool bf16_products, ScratchSizes& sizes);

}  // namespace teratron
