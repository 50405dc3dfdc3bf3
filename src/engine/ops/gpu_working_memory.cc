#include <algorithm>

#include "ops/cuda/scratch_sizes.h"
#include "ops/working_memory.h"

namespace teratron {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

// Sums that pass between a product and a pass of our own, and those of a bias gradient.
std::int64_t linear_bytes(const WorkShapes& work, const WorkShapes::Product& product, DType dtype) {
  // An epilogue takes rows of 16 bytes. Where it cannot add the bias, the sums are in fp32.
  const auto is_aligned = [&](std::int64_t columns) { return columns * size_of(dtype) % 16 == 0; };
  const bool has_epilogue = dtype == DType::kF32 || (is_aligned(product.inputs) && is_aligned(product.outputs));
  const std::int64_t forward = has_epilogue ? 0 : product.rows * product.outputs;
  if (!work.has_backward) return forward * kFloat;
  return std::max(forward, cuda::column_sum_parts(product.rows) * product.outputs) * kFloat;
}

}  // namespace

std::int64_t gpu_scratch_bytes(const WorkShapes& work, DType compute_dtype) {
  std::int64_t most = 0;
  const auto include = [&](std::int64_t bytes) { most = std::max(most, bytes); };
  for (const WorkShapes::Product& product : work.products) include(linear_bytes(work, product, compute_dtype));
  for (const WorkShapes::Attention& attention : work.attentions) {
    if (work.has_backward) {
      include(work.attention_rows * 2 * kFloat);
      include(cuda::norm_gradient_floats(work.attention_rows, attention.head_size) * kFloat);
    } else {
      include((cuda::kCachedAttentionBlocks + work.attention_rows) * (2 + attention.head_size) * kFloat);
    }
  }
  if (!work.has_backward) return most;
  include(work.norm_rows * work.activated_columns * kFloat);  // before the activation's derivative
  include(cuda::norm_gradient_floats(work.norm_rows, work.norm_columns) * kFloat);
  include(cuda::embedding_gradient_floats(work.norm_rows, work.norm_columns) * kFloat);
  include(work.parameters * (cuda::kSquareBlocks + 1) * static_cast<std::int64_t>(sizeof(double)));
  include(cuda::kMostTallyBlocks * static_cast<std::int64_t>(sizeof(Tally)));
  return most;
}

}  // namespace teratron
