#include "ops/cpu/working_memory.h"

#include "ops/cpu/attention/attention.h"
#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/products/linear.h"

namespace teratron {
namespace {

constexpr Scratch kOfStarters[] = {Scratch::kPanels, Scratch::kReduction};

}  // namespace

ScratchSizes most_scratch(const WorkShapes& work, DType compute_dtype, bool starts_loops, bool bf16_products) {
  const bool has_products = bf16_products && compute_dtype == DType::kBF16 && has_bf16_products();
  ScratchSizes sizes;
  for (const WorkShapes::Product& product : work.products) {
    include_linear(product, compute_dtype, has_products, work.has_backward, sizes);
  }
  for (const WorkShapes::Attention& head : work.attentions) {
    include_attention_forward(head, compute_dtype, has_products, sizes);
    if (work.has_backward) include_attention_backward(head, compute_dtype, has_products, sizes);
  }
  if (work.has_backward) {
    include_norm_backward(work.norm_rows, work.norm_columns, sizes);
    include_sum_of_squares(work.largest_parameter, sizes);
  }
  if (!starts_loops) {
    for (const Scratch use : kOfStarters) sizes.clear(use);
  }
  return sizes;
}

std::int64_t cpu_working_bytes(const WorkShapes& work, DType compute_dtype, int threads, bool bf16_products) {
  return most_scratch(work, compute_dtype, true, bf16_products).bytes() +
         (threads - 1) * most_scratch(work, compute_dtype, false, bf16_products).bytes();
}

}  // namespace teratron
