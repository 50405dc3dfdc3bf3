// Low-rank products that are added to a block's sums while it is in cache (LowRankProduct in ops/operations.h).
// Compiled once per target, so the include guard toggles.
#if defined(TERATRON_OPS_CPU_LOW_RANK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_LOW_RANK_INL_H_
#undef TERATRON_OPS_CPU_LOW_RANK_INL_H_
#else
#define TERATRON_OPS_CPU_LOW_RANK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/products/linear_blocks-inl.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/gemm_kernel-inl.h"
#include "ops/operations.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// The part of a low-rank product that is added to a block: columns [begin, end) of the layer's result.
struct LowRankPart {
  const LowRankProduct& product;
  bool transposed;  // the weight is [columns, rank], else [rank, columns]
  std::int64_t begin, end;

  std::int64_t rank() const { return product.rows.dim(1); }
  std::int64_t stride() const { return transposed ? rank() : product.weight.dim(1); }
  template <class T>
  const T* weight(std::int64_t column) const {
    const std::int64_t own = column - product.first_output;
    return product.weight.as<T>() + (transposed ? own * rank() : own);
  }
};

// Scratch memory of add_low_rank_part().
inline std::int64_t low_rank_floats(std::int64_t rows, std::int64_t rank, bool is_widened) {
  return rank * (kPanelColumns + (is_widened ? rows : 0));
}

// Multiplies the rows, in fp32, with one panel at a time of the weight.
template <class T>
void add_low_rank_part(const LowRankPart& part, const GemmBlock& block, const GemmSums& sums) {
  constexpr bool kIsWidened = !std::is_same_v<T, float>;
  const std::int64_t rank = part.rank(), rows = block.rows();
  float* const panel = scratch_floats(Scratch::kLowRank, low_rank_floats(rows, rank, kIsWidened));
  const T* const from = at<T>(part.product.rows, block.row_begin, 0);
  const float* a;
  if constexpr (kIsWidened) {
    widen_row(from, rows * rank, panel + rank * kPanelColumns);
    a = panel + rank * kPanelColumns;
  } else {
    a = from;
  }
  for (std::int64_t j = part.begin; j < part.end; j += kPanelColumns) {
    const std::int64_t columns = std::min(kPanelColumns, part.end - j);
    if (part.transposed) {
      pack_panel_transposed(part.weight<T>(j), part.stride(), rank, columns, panel);
    } else {
      pack_panels(part.weight<T>(j), part.stride(), rank, columns, panel);
    }
    multiply_panel<false>(rows, columns, rank, a, rank, panel, sums.data + j - block.column_begin, sums.stride,
                          /*accumulate=*/true);
  }
}

void add_bf16_low_rank_part(const LowRankPart& part, const GemmBlock& block, const GemmSums& sums) {
  const std::int64_t rank = part.rank();
  auto* const panel =
      reinterpret_cast<std::uint32_t*>(scratch_floats(Scratch::kLowRank, bf16_pairs(rank) * kBf16PanelColumns));
  for (std::int64_t j = part.begin; j < part.end; j += kBf16PanelColumns) {
    const std::int64_t columns = std::min(kBf16PanelColumns, part.end - j);
    if (part.transposed) {
      pack_bf16_panel_transposed(part.weight<Bf16>(j), part.stride(), rank, columns, panel);
    } else {
      pack_bf16_panels(part.weight<Bf16>(j), part.stride(), rank, columns, panel);
    }
    multiply_bf16_panel(block.rows(), columns, rank, at<Bf16>(part.product.rows, block.row_begin, 0), rank, panel,
                        sums.data + j - block.column_begin, sums.stride, /*accumulate=*/true);
  }
}

template <auto add_part>
void add_low_ranks(const LowRankProducts& products, bool transposed, const GemmBlock& block, const GemmSums& sums) {
  for (const LowRankProduct& product : products) {
    if (!product.rows) continue;
    const std::int64_t first = product.first_output, count = product.weight.dim(transposed ? 0 : 1);
    const LowRankPart part{product, transposed, std::max(block.column_begin, first),
                           std::min(block.column_end, first + count)};
    if (part.begin < part.end) add_part(part, block, sums);
  }
}

// Finishes a block of a frozen layer by `finish` of the layer's own arguments.
template <auto add_part, auto finish>
void finish_frozen_forward(const FrozenLinearForward& args, const GemmBlock& block, const GemmSums& sums) {
  add_low_ranks<add_part>(args.added, /*transposed=*/true, block, sums);
  finish(args.linear, block, sums);
}
template <auto add_part, auto finish>
void finish_frozen_gradient(const FrozenLinearInputGradient& args, const GemmBlock& block, const GemmSums& sums) {
  add_low_ranks<add_part>(args.added, /*transposed=*/false, block, sums);
  finish(args.linear, block, sums);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
