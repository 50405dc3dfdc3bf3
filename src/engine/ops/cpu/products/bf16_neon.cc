// The kernels of bf16_kernels.h for Arm, by BFMMLA. It multiplies two rows of a by two columns of b, four depths each,
// and adds the products to the four sums of a register. Written in intrinsics: Highway 1.0.3 has no function for it.
// The functions are compiled for it whatever the rest of the program is compiled for, and called only where the
// processor has it.
#include "ops/cpu/products/bf16_kernels.h"

#if defined(__aarch64__) && !defined(TERATRON_WITHOUT_BF16_PRODUCTS)

#include <arm_neon.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>

#include "hwy/base.h"

namespace teratron {

bool has_bf16_products() {
  static const bool has = (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
  return has;
}

}  // namespace teratron

HWY_PUSH_ATTRIBUTES("arch=armv8.2-a+bf16")
namespace teratron {
namespace {

constexpr std::int64_t kDepths = kBf16Depths, kLanes = 8;  // of a row; of a register

// The first `count` values, then zeros.
inline uint16x4_t load_four(const Bf16* from, std::int64_t count) {
  std::uint16_t values[kDepths] = {};
  std::memcpy(values, from, static_cast<std::size_t>(count) * sizeof(Bf16));
  return vld1_u16(values);
}
inline uint16x8_t load_eight(const Bf16* from, std::int64_t count) {
  if (count >= kLanes) return vld1q_u16(reinterpret_cast<const std::uint16_t*>(from));
  std::uint16_t values[kLanes] = {};
  if (count > 0) std::memcpy(values, from, static_cast<std::size_t>(count) * sizeof(Bf16));
  return vld1q_u16(values);
}

// Rows 2 i and 2 i + 1 of `rows`, `stride` values apart, four depths each; beyond the last row, zeros.
template <int rows>
struct RowPairs {
  const Bf16* from;
  std::int64_t stride;

  bfloat16x8_t operator()(int i) const {
    return load(i, [](const Bf16* row) { return vld1_u16(reinterpret_cast<const std::uint16_t*>(row)); });
  }
  bfloat16x8_t beginning(int i, std::int64_t count) const {  // of the four depths
    return load(i, [&](const Bf16* row) { return load_four(row, count); });
  }

 private:
  template <class Load>
  HWY_INLINE bfloat16x8_t load(int i, const Load& load_row) const {
    const uint16x4_t first = load_row(from + 2 * i * stride);
    const uint16x4_t second = 2 * i + 1 < rows ? load_row(from + (2 * i + 1) * stride) : vdup_n_u16(0);
    return vreinterpretq_bf16_u16(vcombine_u16(first, second));
  }
};

// Pairs of rows that are packed as panels are.
struct PackedPairs {
  const std::uint32_t* from;
  bfloat16x8_t operator()(int i) const { return vreinterpretq_bf16_u32(vld1q_u32(from + 4 * i)); }
};

// Sums of rows 2 i and 2 i + 1 with columns 2 j and 2 j + 1: the first row's, then the second row's.
template <int rows, int columns>
using Sums = float32x4_t[(rows + 1) / 2][(columns + 1) / 2];

template <int rows, int columns, class A, class B>
HWY_INLINE void add_products(const A& a, const B& b, Sums<rows, columns>& sums) {
  bfloat16x8_t pairs[(columns + 1) / 2];
#pragma GCC unroll 4
  for (int j = 0; j < (columns + 1) / 2; ++j) pairs[j] = b(j);
#pragma GCC unroll 4
  for (int i = 0; i < (rows + 1) / 2; ++i) {
    const bfloat16x8_t of_a = a(i);
#pragma GCC unroll 4
    for (int j = 0; j < (columns + 1) / 2; ++j) sums[i][j] = vbfmmlaq_f32(sums[i][j], of_a, pairs[j]);
  }
}

template <int rows, int columns>
HWY_INLINE void clear(Sums<rows, columns>& sums) {
#pragma GCC unroll 4
  for (auto& row : sums) {
#pragma GCC unroll 4
    for (float32x4_t& sum : row) sum = vdupq_n_f32(0);
  }
}

// c[rows, kBf16PanelColumns] (+)= the sums.
template <int rows>
HWY_INLINE void store_tile(const Sums<rows, kBf16PanelColumns>& sums, float* c, std::int64_t c_stride,
                           bool accumulate) {
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kBf16PanelColumns / 4; ++j) {
      const float32x4_t left = sums[i / 2][2 * j], right = sums[i / 2][2 * j + 1];
      float32x4_t row = i % 2 == 0 ? vcombine_f32(vget_low_f32(left), vget_low_f32(right))
                                   : vcombine_f32(vget_high_f32(left), vget_high_f32(right));
      float* const to = c + i * c_stride + 4 * j;
      if (accumulate) row = vaddq_f32(row, vld1q_f32(to));
      vst1q_f32(to, row);
    }
  }
}

// Rows of a where they are: element (i, p) at data[i * stride + p].
struct RowsInPlace {
  const Bf16* data;
  std::int64_t stride;
  RowsInPlace from(std::int64_t row, std::int64_t /*depth*/) const { return {data + row * stride, stride}; }
};
// Rows of a in tiles of pack_bf16_tiles().
struct RowsInTiles {
  const std::uint32_t* data;
  RowsInTiles from(std::int64_t row, std::int64_t depth) const { return {data + row * bf16_pairs(depth)}; }
};

template <int rows>
HWY_INLINE void multiply_tile(std::int64_t depth, const RowsInPlace& a, const std::uint32_t* panel, float* c,
                              std::int64_t c_stride, bool accumulate) {
  Sums<rows, kBf16PanelColumns> sums;
  clear<rows, kBf16PanelColumns>(sums);
  std::int64_t p = 0;
  for (; p + kDepths <= depth; p += kDepths, panel += 2 * kBf16PanelColumns) {
    add_products<rows, kBf16PanelColumns>(RowPairs<rows>{a.data + p, a.stride}, PackedPairs{panel}, sums);
  }
  if (p < depth) {
    const RowPairs<rows> last{a.data + p, a.stride};
    add_products<rows, kBf16PanelColumns>([&](int i) { return last.beginning(i, depth - p); }, PackedPairs{panel},
                                          sums);
  }
  store_tile<rows>(sums, c, c_stride, accumulate);
}

template <int rows>
HWY_INLINE void multiply_tile(std::int64_t depth, const RowsInTiles& a, const std::uint32_t* panel, float* c,
                              std::int64_t c_stride, bool accumulate) {
  Sums<rows, kBf16PanelColumns> sums;
  clear<rows, kBf16PanelColumns>(sums);
  const std::uint32_t* tile = a.data;
  for (std::int64_t p = 0; p < depth; p += kDepths, tile += 2 * kBf16TileRows, panel += 2 * kBf16PanelColumns) {
    add_products<rows, kBf16PanelColumns>(PackedPairs{tile}, PackedPairs{panel}, sums);
  }
  store_tile<rows>(sums, c, c_stride, accumulate);
}

// Multiplies at most a tile's rows.
template <class A, int rows = kBf16TileRows>
inline void multiply_some(std::int64_t row_count, std::int64_t depth, const A& a, const std::uint32_t* panel, float* c,
                          std::int64_t c_stride, bool accumulate) {
  if (row_count == rows) {
    multiply_tile<rows>(depth, a, panel, c, c_stride, accumulate);
  } else if constexpr (rows > 1) {
    multiply_some<A, rows - 1>(row_count, depth, a, panel, c, c_stride, accumulate);
  }
}

template <class A>
void multiply_all(std::int64_t rows, std::int64_t columns, std::int64_t depth, const A& a, const std::uint32_t* panel,
                  float* c, std::int64_t c_stride, bool accumulate) {
  for (std::int64_t i = 0; i < rows; i += kBf16TileRows, c += kBf16TileRows * c_stride) {
    const std::int64_t count = std::min(kBf16TileRows, rows - i);
    if (columns == kBf16PanelColumns) {
      multiply_some(count, depth, a.from(i, depth), panel, c, c_stride, accumulate);
      continue;
    }
    float tile[kBf16TileRows * kBf16PanelColumns];
    multiply_some(count, depth, a.from(i, depth), panel, tile, kBf16PanelColumns, false);
    for (std::int64_t t = 0; t < count; ++t) {
      float* const to = c + t * c_stride;
      const float* const from = tile + t * kBf16PanelColumns;
      for (std::int64_t j = 0; j < columns; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
    }
  }
}

// Packs b[depth, columns] into panels of `width` columns, one after the other.
template <std::int64_t width>
void pack(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns, std::uint32_t* panels) {
  static_assert(width == kLanes || width == kLanes / 2);
  for (std::int64_t j = 0; j < columns; j += width) {
    for (std::int64_t p = 0; p < depth; p += kDepths, panels += 2 * width) {
      uint16x8_t rows[kDepths];
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < kDepths; ++i) {
        rows[i] = p + i < depth ? load_eight(b + (p + i) * b_stride + j, std::min(width, columns - j)) : vdupq_n_u16(0);
      }
      // Words of the first two depths and of the last two, then both of a column.
      const auto words = [](uint16x8_t low, uint16x8_t high, bool last) {
        return vreinterpretq_u32_u16(last ? vzip2q_u16(low, high) : vzip1q_u16(low, high));
      };
#pragma GCC unroll 2
      for (std::int64_t half = 0; half < width / 4; ++half) {
        const uint32x4_t first = words(rows[0], rows[1], half == 1), second = words(rows[2], rows[3], half == 1);
        vst1q_u32(panels + 8 * half, vzip1q_u32(first, second));
        vst1q_u32(panels + 8 * half + 4, vzip2q_u32(first, second));
      }
    }
  }
}

// Rows and columns that are multiplied where they are, at a time. Eight registers hold their sums.
constexpr int kDotRows = 4, kDotColumns = 8;

template <int rows, int columns>
inline void dot_tile(std::int64_t depth, const Bf16* a, const Bf16* b, float* c, std::int64_t c_stride) {
  Sums<rows, columns> sums;
  clear<rows, columns>(sums);
  std::int64_t p = 0;
  for (; p + kDepths <= depth; p += kDepths) {
    add_products<rows, columns>(RowPairs<rows>{a + p, depth}, RowPairs<columns>{b + p, depth}, sums);
  }
  if (p < depth) {
    const RowPairs<rows> last_a{a + p, depth};
    const RowPairs<columns> last_b{b + p, depth};
    add_products<rows, columns>([&](int i) { return last_a.beginning(i, depth - p); },
                                [&](int j) { return last_b.beginning(j, depth - p); }, sums);
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      float four[4];
      vst1q_f32(four, sums[i / 2][j / 2]);
      c[i * c_stride + j] = four[i % 2 * 2 + j % 2];
    }
  }
}

template <int columns, int tile = kDotRows>
inline void dot_rows(std::int64_t rows, std::int64_t depth, const Bf16* a, const Bf16* b, float* c,
                     std::int64_t c_stride) {
  std::int64_t t = 0;
  for (; t + tile <= rows; t += tile) dot_tile<tile, columns>(depth, a + t * depth, b, c + t * c_stride, c_stride);
  if constexpr (tile > 1) {
    dot_rows<columns, tile / 2>(rows - t, depth, a + t * depth, b, c + t * c_stride, c_stride);
  }
}

}  // namespace

void pack_bf16_panels(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                      std::uint32_t* panels) {
  pack<kBf16PanelColumns>(b, b_stride, depth, columns, panels);
}

void pack_bf16_panel_transposed(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                                std::uint32_t* panel) {
  for (std::int64_t p = 0; p < depth; p += kDepths) {
    for (std::int64_t j = 0; j < kBf16PanelColumns; ++j, panel += 2) {
      const std::int64_t count = j < columns ? std::min(kDepths, depth - p) : 0;
      const uint16x4_t four = count > 0 ? load_four(b + j * b_stride + p, count) : vdup_n_u16(0);
      vst1_u32(panel, vreinterpret_u32_u16(four));
    }
  }
}

void pack_bf16_tiles(const Bf16* a, std::int64_t a_stride, std::int64_t rows, std::int64_t depth,
                     std::uint32_t* tiles) {
  pack<kBf16TileRows>(a, a_stride, depth, rows, tiles);
}

void round_to_bf16(const float* from, std::int64_t count, Bf16* to, const Bf16* bias) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    float32x4_t low = vld1q_f32(from + i), high = vld1q_f32(from + i + kLanes / 2);
    if (bias != nullptr) {
      const uint16x8_t values = load_eight(bias + i, kLanes);
      low = vaddq_f32(low, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(values), 16)));
      high = vaddq_f32(high, vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(values), 16)));
    }
    const bfloat16x8_t rounded = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(low), high);
    vst1q_u16(reinterpret_cast<std::uint16_t*>(to + i), vreinterpretq_u16_bf16(rounded));
  }
  for (; i < count; ++i) to[i] = Bf16(bias != nullptr ? from[i] + float{bias[i]} : from[i]);
}

void multiply_bf16_panel(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Bf16* a,
                         std::int64_t a_stride, const std::uint32_t* panel, float* c, std::int64_t c_stride,
                         bool accumulate) {
  multiply_all(rows, columns, depth, RowsInPlace{a, a_stride}, panel, c, c_stride, accumulate);
}

void multiply_bf16_tiles(std::int64_t rows, std::int64_t columns, std::int64_t depth, const std::uint32_t* tiles,
                         const std::uint32_t* panel, float* c, std::int64_t c_stride, bool accumulate) {
  multiply_all(rows, columns, depth, RowsInTiles{tiles}, panel, c, c_stride, accumulate);
}

void multiply_bf16_rows(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Bf16* a, const Bf16* b,
                        float* c, std::int64_t c_stride) {
  std::int64_t o = 0;
  for (; o + kDotColumns <= columns; o += kDotColumns)
    dot_rows<kDotColumns>(rows, depth, a, b + o * depth, c + o, c_stride);
  for (; o < columns; ++o) dot_rows<1>(rows, depth, a, b + o * depth, c + o, c_stride);
}

}  // namespace teratron
HWY_POP_ATTRIBUTES

#endif
