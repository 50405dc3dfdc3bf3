// Kernels of gemm.h with sums in fp32: panels of b, and blocks of c. Rows of an fp32 a are read in place (measured to
// cost nothing, whatever their stride). A transposed a is packed by block, since its columns of a large power-of-two
// stride would compete for a few cache sets. A 16-bit a is converted by block.
//
// On packed panels the kernel reaches 97 % of the FMA peak of Zen 4 (91.8 GFLOP/s) and of Zen 5 (256).
#include "ops/cpu/products/gemm.h"

#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/products/gemm_float.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/block_size.h"
#include "hwy/highway.h"
#include "ops/cpu/products/tile_values.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/gemm_kernel-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// A panel of this depth (48 KB with 32 columns) and a tile's rows of a stay close to the first-level cache.
constexpr std::int64_t kMaxDepth = block_size(384, 2);
// 4 MB: as fast as 8 (measured), and each rank has its own.
constexpr std::int64_t kMaxPanelWords = block_size(1 << 20, 64);
constexpr std::int64_t kMaxBlockColumns = block_size(512, 1);  // rows of a, part of c: in the second-level cache
// With long tiles: for a second-level cache of 2 MB, which holds most of a packed block and has room for wider blocks.
constexpr std::int64_t kMaxLongPanelWords = block_size(1 << 19, 64), kMaxLongBlockColumns = block_size(768, 1);

// The panels of columns [column_begin, column_end) of a packed block: for each block of depth, panel after panel.
template <class T>
void pack_columns(const GemmOperand& b, const PackedBlock& packed, std::int64_t column_begin, std::int64_t column_end) {
  const T* const data = static_cast<const T*>(b.data);
  for (const DepthBlock& depths : packed.depths) {
    const std::int64_t p = depths.begin, depth = depths.count;
    float* const panels = static_cast<float*>(packed.panels) + packed.words_before(depths, kPanelColumns);
    if (b.tiles) {
      for_each_widened_part<T>(b, depths, {column_begin, column_end}, kPanelColumns, [&](const WidenedPart<T>& part) {
        float* const to = panels + (part.column - packed.column_begin) * depth + part.depth * kPanelColumns;
        if (b.transposed) {
          pack_panel_transposed(part.values, part.stride, part.depths, part.columns, to);
        } else {
          pack_panels(part.values, part.stride, part.depths, part.columns, to);
        }
      });
      continue;
    }
    if (!b.transposed) {
      pack_panels(data + p * b.stride + column_begin, b.stride, depth, column_end - column_begin,
                  panels + (column_begin - packed.column_begin) * depth);
      continue;
    }
    for (std::int64_t j = column_begin; j < column_end; j += kPanelColumns) {
      pack_panel_transposed(data + j * b.stride + p, b.stride, depth, std::min(kPanelColumns, column_end - j),
                            panels + (j - packed.column_begin) * depth);
    }
  }
}

// Widens one element of each of `rows` rows, which lie side by side, in the largest vectors that fit.
template <int rows, class T>
HWY_INLINE void widen_tile_rows(const T* from, float* to) {
  static_assert(rows % 2 == 0);
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(to, from, rows * sizeof(float));
  } else if constexpr (kFloatLanes < 4) {
    std::copy(from, from + rows, to);
  } else {
    const hn::FixedTag<float, std::min<std::size_t>(4, kFloatLanes)> four;
    const hn::FixedTag<float, std::min<std::size_t>(2, kFloatLanes)> two;
    for (int i = 0; i + 4 <= rows; i += 4) hn::StoreU(widen(four, from + i), four, to + i);
    if constexpr (rows % 4 == 2) hn::StoreU(widen(two, from + rows - 2), two, to + rows - 2);
  }
}

// Rows of a transposed a[rows, depth], tile by tile: element (i, p) of a tile at tile[p * Tiles::kRows + i]. A few
// depths at a time, so that the cache lines of a that tiles share are read once.
template <class Tiles, class T>
void pack_rows(const T* a, std::int64_t a_stride, std::int64_t rows, std::int64_t depth, float* tiles) {
  constexpr std::int64_t kDepths = 8, kRows = Tiles::kRows;
  for (std::int64_t begin = 0; begin < depth; begin += kDepths) {
    const std::int64_t end = std::min(depth, begin + kDepths);
    for (std::int64_t i = 0; i < rows; i += kRows) {
      float* to = tiles + i * depth + begin * kRows;
      for (std::int64_t p = begin; p < end; ++p, to += kRows) {
        const T* const from = a + p * a_stride + i;
        hwy::Prefetch(from + kDepths * a_stride);
        if (i + kRows <= rows) {
          widen_tile_rows<Tiles::kRows>(from, to);
        } else {
          std::copy(from, from + rows - i, to);
        }
      }
    }
  }
}

// Elements (i, p) of a at data[i * stride + p].
struct Rows {
  const float* data;
  std::int64_t stride;
};

// The block's rows of an a that is not transposed, from depth p on: where they are if they are fp32, else converted.
template <class T>
Rows rows_of(const GemmOperand& a, const GemmBlock& block, std::int64_t p, std::int64_t depth, float* converted) {
  const T* const from = static_cast<const T*>(a.data) + block.row_begin * a.stride + p;
  if constexpr (std::is_same_v<T, float>) {
    return {from, a.stride};
  } else {
    for (std::int64_t i = 0; i < block.rows(); ++i) widen_row(from + i * a.stride, depth, converted + i * depth);
    return {converted, depth};
  }
}

template <class T, class Tiles>
GemmSums multiply_block(const Gemm& gemm, const PackedBlock& packed, const GemmBlock& block) {
  constexpr std::int64_t kRows = Tiles::kRows;
  const std::int64_t rows = block.rows();
  const GemmSums sums = sums_of(gemm, block, kPanelColumns);
  const bool needs_tiles = gemm.a.transposed || !std::is_same_v<T, float>;
  float* const tiles = needs_tiles ? scratch_floats(Scratch::kTileA, (rows + kRows) * largest_depth(packed)) : nullptr;
  for (const DepthBlock& depths : packed.depths) {
    const std::int64_t p = depths.begin, depth = depths.count;
    const bool accumulate = gemm.accumulate || !depths.is_first();
    const float* const panels = static_cast<const float*>(packed.panels) + packed.words_before(depths, kPanelColumns);
    Rows a{};
    if (gemm.a.transposed) {
      const T* const from = static_cast<const T*>(gemm.a.data) + p * gemm.a.stride + block.row_begin;
      pack_rows<Tiles>(from, gemm.a.stride, rows, depth, tiles);
    } else {
      a = rows_of<T>(gemm.a, block, p, depth, tiles);
    }
    for (std::int64_t j = block.column_begin; j < block.column_end; j += kPanelColumns) {
      const float* const panel = panels + (j - packed.column_begin) * depth;
      const std::int64_t columns = std::min(kPanelColumns, block.column_end - j);
      float* const c = sums.data + j - block.column_begin;
      if (gemm.a.transposed) {
        for (std::int64_t i = 0; i < rows; i += kRows) {
          multiply_panel<true, Tiles>(std::min<std::int64_t>(kRows, rows - i), columns, depth, tiles + i * depth, kRows,
                                      panel, c + i * sums.stride, sums.stride, accumulate);
        }
      } else {
        multiply_panel<false, Tiles>(rows, columns, depth, a.data, a.stride, panel, c, sums.stride, accumulate);
      }
    }
  }
  return sums;
}

GemmKernels gemm_kernels(DType dtype, bool long_tiles) {
  return choose_by_storage(dtype, [&]<class T>(ElementType<T>) {
    GemmKernels kernels{kTileRows, kPanelColumns, 1, 1, kMaxDepth, kMaxPanelWords, kMaxBlockColumns, &pack_columns<T>};
    kernels.multiply_block = &multiply_block<T, PlainTiles>;
    if (long_tiles && kFloatLanes == 16) {
      kernels.tile_rows = LongTiles::kRows;
      kernels.max_panel_words = kMaxLongPanelWords;
      kernels.max_block_columns = kMaxLongBlockColumns;
      kernels.multiply_block = &multiply_block<T, LongTiles>;
    }
    return kernels;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {
HWY_EXPORT(gemm_kernels);
}

GemmKernels float_gemm_kernels(DType dtype, bool long_tiles) {
  return HWY_DYNAMIC_DISPATCH(gemm_kernels)(dtype, long_tiles);
}

}  // namespace teratron
#endif  // HWY_ONCE
