#include "ops/working_memory.h"

#include "ops/cpu/attention/attention.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/products/linear.h"
#include "ops/cpu/products/tile_products.h"
#include "ops/cpu/scratch.h"

namespace teratron {
namespace {

// Blocks that only a thread that starts loops takes: its helpers read them.
constexpr Scratch kOfStarters[] = {Scratch::kPanels, Scratch::kReduction};

}  // namespace

ScratchSizes most_scratch(const WorkShapes& work, const CpuOptions& options, bool starts_loops) {
  const DType compute_dtype = options.compute_dtype;
  const bool bf16_products = multiplies_bf16(options);
  ScratchSizes sizes;
  for (const WorkShapes::Product& product : work.products) {
    if (work.has_tiles) {
      include_tile_linear(product, sizes);
    } else {
      include_linear(product, compute_dtype, bf16_products, work.has_backward, sizes);
    }
    include_low_rank(product.rows, work.low_rank, compute_dtype, bf16_products, sizes);
  }
  for (const WorkShapes::Attention& head : work.attentions) {
    include_attention_forward(head, compute_dtype, bf16_products, sizes);
    if (work.has_backward) include_attention_backward(head, compute_dtype, bf16_products, sizes);
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

std::int64_t cpu_working_bytes(const WorkShapes& work, const CpuOptions& options, int threads) {
  return most_scratch(work, options, true).bytes() + (threads - 1) * most_scratch(work, options, false).bytes();
}

}  // namespace teratron
