// GemmKernels of bf16 (bf16_kernels.h): panels of b hold pairs of depths, rows of a are read in place, and a transposed
// a is packed by block, as in fp32 (gemm_float.cc).
#include <algorithm>

#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/products/gemm.h"
#include "ops/cpu/products/tile_values.h"
#include "ops/cpu/scratch.h"

namespace teratron {
namespace {

// A panel of this depth (48 KB of AVX512-BF16) comes from the second-level cache as fast as it is used (measured).
constexpr std::int64_t kBf16MaxDepth = block_size(768, kBf16Depths);
// 8 MB: 2 % faster than 4 in a training step of 124M.
constexpr std::int64_t kBf16MaxPanelWords = block_size(2 << 20, 64);
constexpr std::int64_t kBf16MaxBlockColumns = block_size(512, 1);

std::uint32_t* word_scratch(Scratch use, std::int64_t count) {
  return reinterpret_cast<std::uint32_t*>(scratch_floats(use, count));
}

void pack_bf16_columns(const GemmOperand& b, const PackedBlock& packed, std::int64_t begin, std::int64_t end) {
  const auto* const data = static_cast<const Bf16*>(b.data);
  for (const DepthBlock& depths : packed.depths) {
    const std::int64_t p = depths.begin, depth = depths.count;
    std::uint32_t* const panels =
        static_cast<std::uint32_t*>(packed.panels) + packed.words_before(depths, kBf16PanelColumns);
    const auto at = [&](std::int64_t column) { return panels + (column - packed.column_begin) * bf16_pairs(depth); };
    if (b.tiles) {
      for_each_widened_part<Bf16>(b, depths, {begin, end}, kBf16PanelColumns, [&](const WidenedPart<Bf16>& part) {
        std::uint32_t* const to = at(part.column) + part.depth / 2 * kBf16PanelColumns;
        if (b.transposed) {
          pack_bf16_panel_transposed(part.values, part.stride, part.depths, part.columns, to);
        } else {
          pack_bf16_panels(part.values, part.stride, part.depths, part.columns, to);
        }
      });
      continue;
    }
    if (!b.transposed) {
      pack_bf16_panels(data + p * b.stride + begin, b.stride, depth, end - begin, at(begin));
      continue;
    }
    for (std::int64_t j = begin; j < end; j += kBf16PanelColumns) {
      pack_bf16_panel_transposed(data + j * b.stride + p, b.stride, depth, std::min(kBf16PanelColumns, end - j), at(j));
    }
  }
}

GemmSums multiply_bf16_block(const Gemm& gemm, const PackedBlock& packed, const GemmBlock& block) {
  const std::int64_t rows = block.rows();
  const GemmSums sums = sums_of(gemm, block, kBf16PanelColumns);
  const auto* const a = static_cast<const Bf16*>(gemm.a.data);
  std::uint32_t* const tiles =
      gemm.a.transposed ? word_scratch(Scratch::kTileA, (rows + kBf16TileRows) * bf16_pairs(largest_depth(packed)))
                        : nullptr;
  for (const DepthBlock& depths : packed.depths) {
    const std::int64_t p = depths.begin, depth = depths.count;
    const bool accumulate = gemm.accumulate || !depths.is_first();
    const std::uint32_t* const panels =
        static_cast<const std::uint32_t*>(packed.panels) + packed.words_before(depths, kBf16PanelColumns);
    if (gemm.a.transposed) pack_bf16_tiles(a + p * gemm.a.stride + block.row_begin, gemm.a.stride, rows, depth, tiles);
    for (std::int64_t j = block.column_begin; j < block.column_end; j += kBf16PanelColumns) {
      const std::uint32_t* const panel = panels + (j - packed.column_begin) * bf16_pairs(depth);
      const std::int64_t columns = std::min(kBf16PanelColumns, block.column_end - j);
      float* const c = sums.data + j - block.column_begin;
      if (gemm.a.transposed) {
        multiply_bf16_tiles(rows, columns, depth, tiles, panel, c, sums.stride, accumulate);
      } else {
        multiply_bf16_panel(rows, columns, depth, a + block.row_begin * gemm.a.stride + p, gemm.a.stride, panel, c,
                            sums.stride, accumulate);
      }
    }
  }
  return sums;
}

}  // namespace

GemmKernels bf16_gemm_kernels() {
  return {kBf16TileRows,        kBf16PanelColumns,  2,
          kBf16Depths,          kBf16MaxDepth,      kBf16MaxPanelWords,
          kBf16MaxBlockColumns, &pack_bf16_columns, &multiply_bf16_block};
}

}  // namespace teratron
