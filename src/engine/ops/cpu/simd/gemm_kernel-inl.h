// Kernels of an fp32 matrix product c (+)= a b: packing b into panels, and the kernel that multiplies rows of a by one
// panel with its tile of c in registers (Goto and van de Geijn, ACM TOMS 34(3), 2008). Written by hand because linear
// layers and attention share packed operands and finish blocks while they are in cache, which a library call does not
// allow. Compiled once per target, so the include guard toggles.
#if defined(TERATRON_OPS_CPU_GEMM_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_GEMM_KERNEL_INL_H_
#undef TERATRON_OPS_CPU_GEMM_KERNEL_INL_H_
#else
#define TERATRON_OPS_CPU_GEMM_KERNEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "base/block_size.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/cpu/products/gemm.h"
#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {

// A tile of c is kTileRows x kPanelColumns: as large as the registers hold, next to two vectors of b and one value of a
// (16 registers with AVX2, 32 elsewhere).
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SCALAR
constexpr int kTileRows = block_size(6, 2);
#else
constexpr int kTileRows = block_size(8, 2);
#endif
constexpr std::int64_t kPanelColumns = 2 * kFloatLanes;

// Shapes of tiles, which share panels and give the same bits.
struct PlainTiles {
  static constexpr int kRows = kTileRows;
  static constexpr std::int64_t kDepthsAhead = 0;  // the hardware fetches a panel early enough
};
// Tiles for processors whose panels come late (has_slow_panels()): more rows a pass over a panel, which is fetched
// ahead.
struct LongTiles {
  static constexpr int kRows = kFloatLanes == 16 ? block_size(12, 4) : kTileRows;
  static constexpr std::int64_t kDepthsAhead = kFloatLanes == 16 ? 32 : 0;
};

// tile[rows, vectors * kFloatLanes] of c (+)= a[rows, depth] panel[depth, ..], whose rows are kPanelColumns long.
// Element (i, p) of a is at a[i * a_stride + p] or, with `transposed`, at a[p * a_stride + i].
template <class Tiles, int rows, bool transposed, int vectors>
HWY_INLINE void multiply_tile(std::int64_t depth, const float* HWY_RESTRICT a, std::int64_t a_stride,
                              const float* HWY_RESTRICT panel, float* HWY_RESTRICT c, std::int64_t c_stride,
                              bool accumulate) {
  const FloatTag d;
  FloatVector left[rows], right[rows];
  constexpr bool kFetches = Tiles::kDepthsAhead > 0;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    left[i] = right[i] = hn::Zero(d);
    // The tile arrives while it is computed, or its stores would wait for it.
    if constexpr (!kFetches) hwy::Prefetch(c + i * c_stride);
  }
  // All rows of c at once would keep the panel waiting: each is fetched before its part of the depths.
  constexpr int kParts = kFetches ? rows : 1;
  std::int64_t p = 0;
  for (int part = 0; part < kParts; ++part) {
    if constexpr (kFetches) {
      hwy::Prefetch(c + part * c_stride);
      hwy::Prefetch(c + part * c_stride + kFloatLanes);
    }
    const std::int64_t end = depth * (part + 1) / kParts;
#pragma GCC unroll 2
    for (; p < end; ++p) {
      if constexpr (kFetches) {
        hwy::Prefetch(panel + Tiles::kDepthsAhead * kPanelColumns);  // past its end: of the next panel
        hwy::Prefetch(panel + Tiles::kDepthsAhead * kPanelColumns + kFloatLanes);
      }
      const FloatVector b_left = hn::Load(d, panel);
      const FloatVector b_right = vectors == 2 ? hn::Load(d, panel + kFloatLanes) : b_left;
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const FloatVector a_value = hn::Set(d, transposed ? a[i] : a[i * a_stride]);
        left[i] = hn::MulAdd(a_value, b_left, left[i]);
        if constexpr (vectors == 2) right[i] = hn::MulAdd(a_value, b_right, right[i]);
      }
      a += transposed ? a_stride : 1;
      panel += kPanelColumns;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    float* const to = c + i * c_stride;
    if (accumulate) {
      left[i] = hn::Add(left[i], hn::LoadU(d, to));
      if constexpr (vectors == 2) right[i] = hn::Add(right[i], hn::LoadU(d, to + kFloatLanes));
    }
    hn::StoreU(left[i], d, to);
    if constexpr (vectors == 2) hn::StoreU(right[i], d, to + kFloatLanes);
  }
}

// Multiplies at most a tile's rows.
template <class Tiles, bool transposed, int vectors, int rows = Tiles::kRows>
HWY_INLINE void multiply_rows(std::int64_t row_count, std::int64_t depth, const float* a, std::int64_t a_stride,
                              const float* panel, float* c, std::int64_t c_stride, bool accumulate) {
  if (row_count == rows) {
    multiply_tile<Tiles, rows, transposed, vectors>(depth, a, a_stride, panel, c, c_stride, accumulate);
  } else if constexpr (rows > 1) {
    multiply_rows<Tiles, transposed, vectors, rows - 1>(row_count, depth, a, a_stride, panel, c, c_stride, accumulate);
  }
}

// c[rows, columns] (+)= a[rows, depth] panel[depth, columns] for any number of rows and at most kPanelColumns columns.
// With few columns (low ranks) half a panel's are multiplied. The bits are the same.
template <bool transposed, class Tiles = PlainTiles>
HWY_NOINLINE void multiply_panel(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a,
                                 std::int64_t a_stride, const float* panel, float* c, std::int64_t c_stride,
                                 bool accumulate) {
  const std::int64_t a_step = transposed ? 1 : a_stride;
  for (std::int64_t i = 0; i < rows; i += Tiles::kRows) {
    const std::int64_t tile_rows = std::min<std::int64_t>(Tiles::kRows, rows - i);
    const float* const from_a = a + i * a_step;
    if (columns == kPanelColumns) {
      multiply_rows<Tiles, transposed, 2>(tile_rows, depth, from_a, a_stride, panel, c + i * c_stride, c_stride,
                                          accumulate);
      continue;
    }
    if (columns == kFloatLanes) {
      multiply_rows<Tiles, transposed, 1>(tile_rows, depth, from_a, a_stride, panel, c + i * c_stride, c_stride,
                                          accumulate);
      continue;
    }
    HWY_ALIGN float tile[Tiles::kRows * kPanelColumns];
    if (columns < kFloatLanes) {
      multiply_rows<Tiles, transposed, 1>(tile_rows, depth, from_a, a_stride, panel, tile, kPanelColumns, false);
    } else {
      multiply_rows<Tiles, transposed, 2>(tile_rows, depth, from_a, a_stride, panel, tile, kPanelColumns, false);
    }
    for (std::int64_t row = 0; row < tile_rows; ++row) {
      float* const to = c + (i + row) * c_stride;
      const float* const from = tile + row * kPanelColumns;
      for (std::int64_t j = 0; j < columns; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
    }
  }
}

// Rows are prefetched so far ahead of their use: the packed parts can be too short for the hardware to predict.
constexpr std::int64_t kRowsAhead = 16;
constexpr std::int64_t kLine = 16;  // floats of a cache line

// Panels of b[depth, columns], fp32 whatever b is, rows of unit stride, one after the other; columns beyond the last
// are zero. Rows are read along their length, which is what memory is fastest at, so `columns` should be a few panels.
template <class T>
HWY_INLINE void pack_panels(const T* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                            float* panels) {
  const FloatTag d;
  const std::int64_t panel_size = depth * kPanelColumns, whole = columns / kPanelColumns * kPanelColumns;
  for (std::int64_t p = 0; p < depth; ++p, b += b_stride, panels += kPanelColumns) {
    float* to = panels;
    for (std::int64_t j = 0; j < whole; j += kPanelColumns, to += panel_size) {
      hwy::Prefetch(b + kRowsAhead * b_stride + j);
      hn::Store(widen(d, b + j), d, to);
      hn::Store(widen(d, b + j + kFloatLanes), d, to + kFloatLanes);
    }
    if (whole < columns) std::fill(std::copy(b + whole, b + columns, to), to + kPanelColumns, 0.0F);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Four values of each of a vector's lanes / 4 rows, four rows apart.
template <class D, class T>
HWY_INLINE auto load_fours(D d, const T* from, std::int64_t stride) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if constexpr (kLanes == 4) {
    return widen(d, from);
  } else {
    const hn::FixedTag<float, kLanes / 2> half;
    return hn::Combine(d, load_fours(half, from + kLanes / 2 * stride, stride), load_fours(half, from, stride));
  }
}

// Transposes from[lanes of d, 4] of row stride from_stride to to[4, lanes] of row stride kPanelColumns.
template <class D, class T>
HWY_INLINE void transpose_fours(D d, const T* from, std::int64_t from_stride, float* to) {
  const hn::Repartition<double, D> pairs;
  const auto row0 = load_fours(d, from, from_stride), row1 = load_fours(d, from + from_stride, from_stride);
  const auto row2 = load_fours(d, from + 2 * from_stride, from_stride);
  const auto row3 = load_fours(d, from + 3 * from_stride, from_stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + kPanelColumns);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * kPanelColumns);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * kPanelColumns);
}

// As many columns of pack_panel_transposed() as d has lanes, a cache line of each at a time. Depth is whole lines.
template <class D, class T>
HWY_INLINE void pack_lines(D d, const T* b, std::int64_t b_stride, std::int64_t depth, float* panel) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  for (std::int64_t p = 0; p < depth; p += kLine) {
    for (std::int64_t j = 0; j < kLanes; ++j) hwy::Prefetch(b + j * b_stride + p + 2 * kLine);
    for (std::int64_t q = p; q < p + kLine; q += 4) transpose_fours(d, b + q, b_stride, panel + q * kPanelColumns);
  }
}
#endif

// One panel of b transposed, columns <= kPanelColumns: element (p, j) is at b[j * b_stride + p].
template <class T>
HWY_INLINE void pack_panel_transposed(const T* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                                      float* panel) {
  std::int64_t whole = 0, j = 0;  // the depths and columns that are transposed in vectors
#if HWY_TARGET != HWY_SCALAR
  whole = depth / kLine * kLine;
  for (; j + kFloatLanes <= columns; j += kFloatLanes) {
    pack_lines(FloatTag(), b + j * b_stride, b_stride, whole, panel + j);
  }
  const hn::FixedTag<float, 4> four;
  for (; j + 4 <= columns; j += 4) pack_lines(four, b + j * b_stride, b_stride, whole, panel + j);
#endif
  for (std::int64_t p = j < kPanelColumns ? 0 : whole; p < depth; ++p) {
    for (std::int64_t column = p < whole ? j : 0; column < kPanelColumns; ++column) {
      panel[p * kPanelColumns + column] = column < columns ? float{b[column * b_stride + p]} : 0.0F;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
