// Written in intrinsics: Highway 1.0.3 has no target with AVX512-BF16. The functions are compiled for it whatever the
// rest of the program is compiled for, and called only where the processor has it.
#include "ops/cpu/products/bf16_kernels.h"

#if defined(__x86_64__) && !defined(TERATRON_WITHOUT_BF16_PRODUCTS)

// GCC warns falsely about an unused operand of its own intrinsics.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "hwy/base.h"

namespace teratron {

bool has_bf16_products() {
  static const bool has = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return has;
}

}  // namespace teratron

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")
namespace teratron {
namespace {

constexpr std::int64_t kWordLanes = 16, kHalfLanes = 32, kWordBytes = 4;

inline __m512i broadcast(const void* word) {
  std::int32_t value;
  std::memcpy(&value, word, sizeof(value));
  return _mm512_set1_epi32(value);
}

inline __m512 add_products(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// The first `count` of 32 lanes.
inline __mmask32 first_halves(std::int64_t count) {
  return count >= kHalfLanes ? ~__mmask32{0} : (__mmask32{1} << std::max(std::int64_t{0}, count)) - 1;
}

inline __m512 widen(__m256i values) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}

inline __m512i rounded(__m512 low, __m512 high) { return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)); }

// 32 sums of a value and a bias, rounded.
inline __m512i rounded_sum(__m512 low, __m512 high, __m512i bias) {
  return rounded(_mm512_add_ps(low, widen(_mm512_castsi512_si256(bias))),
                 _mm512_add_ps(high, widen(_mm512_extracti64x4_epi64(bias, 1))));
}

// Two rows of 32 values as 32 words.
struct Words {
  __m512i first, second;
};
inline Words interleave(__m512i low, __m512i high) {
  const __m512i lanes = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i next = _mm512_add_epi16(lanes, _mm512_set1_epi16(16));
  return {_mm512_permutex2var_epi16(low, lanes, high), _mm512_permutex2var_epi16(low, next, high)};
}

// Transposes 16 rows of 16 words in place.
HWY_INLINE void transpose(__m512i (&rows)[16]) {
  __m512i pairs[16], fours[16], eights[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    eights[i] = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0x88);
    eights[i + 4] = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0xdd);
    eights[i + 8] = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0x88);
    eights[i + 12] = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(eights[i], eights[i + 8], 0x88);
    rows[i + 4] = _mm512_shuffle_i32x4(eights[i + 4], eights[i + 12], 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(eights[i], eights[i + 8], 0xdd);
    rows[i + 12] = _mm512_shuffle_i32x4(eights[i + 4], eights[i + 12], 0xdd);
  }
}

// c[rows, 16 * vectors] (+)= a b. Word (i, q) of a is at a + i * row_step + q * word_step bytes; with `has_tail`, a row
// ends with half a word.
template <int rows, int vectors>
inline void multiply_tile(std::int64_t words, bool has_tail, const char* a, std::int64_t row_step,
                          std::int64_t word_step, const std::uint32_t* panel, float* c, std::int64_t c_stride,
                          bool accumulate) {
  __m512 left[rows], right[rows];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
    left[i] = right[i] = _mm512_setzero_ps();
    _mm_prefetch(c + i * c_stride, _MM_HINT_T0);  // the tile arrives while it is computed
    if constexpr (vectors == 2) _mm_prefetch(c + i * c_stride + kWordLanes, _MM_HINT_T0);
  }
#pragma GCC unroll 2
  for (std::int64_t q = 0; q < words; ++q, a += word_step, panel += kBf16PanelColumns) {
    const __m512i b_left = _mm512_loadu_si512(panel);
    const __m512i b_right = vectors == 2 ? _mm512_loadu_si512(panel + kWordLanes) : b_left;
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const __m512i value = broadcast(a + i * row_step);
      left[i] = add_products(left[i], value, b_left);
      if constexpr (vectors == 2) right[i] = add_products(right[i], value, b_right);
    }
  }
  if (has_tail) {
    const __m512i b_left = _mm512_loadu_si512(panel);
    const __m512i b_right = vectors == 2 ? _mm512_loadu_si512(panel + kWordLanes) : b_left;
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      std::uint16_t half;
      std::memcpy(&half, a + i * row_step, sizeof(half));
      const __m512i value = _mm512_set1_epi32(half);
      left[i] = add_products(left[i], value, b_left);
      if constexpr (vectors == 2) right[i] = add_products(right[i], value, b_right);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
    float* const to = c + i * c_stride;
    if (accumulate) {
      left[i] = _mm512_add_ps(left[i], _mm512_loadu_ps(to));
      if constexpr (vectors == 2) right[i] = _mm512_add_ps(right[i], _mm512_loadu_ps(to + kWordLanes));
    }
    _mm512_storeu_ps(to, left[i]);
    if constexpr (vectors == 2) _mm512_storeu_ps(to + kWordLanes, right[i]);
  }
}

template <int vectors, int rows = kBf16TileRows>
inline void multiply_rows(std::int64_t row_count, std::int64_t words, bool has_tail, const char* a,
                          std::int64_t row_step, std::int64_t word_step, const std::uint32_t* panel, float* c,
                          std::int64_t c_stride, bool accumulate) {
  if (row_count == rows) {
    multiply_tile<rows, vectors>(words, has_tail, a, row_step, word_step, panel, c, c_stride, accumulate);
  } else if constexpr (rows > 1) {
    multiply_rows<vectors, rows - 1>(row_count, words, has_tail, a, row_step, word_step, panel, c, c_stride,
                                     accumulate);
  }
}

// Multiplies fewer columns than a panel has, and leaves the rest of c alone.
void multiply_edge(std::int64_t rows, std::int64_t columns, std::int64_t words, bool has_tail, const char* a,
                   std::int64_t row_step, std::int64_t word_step, const std::uint32_t* panel, float* c,
                   std::int64_t c_stride, bool accumulate) {
  alignas(64) float tile[kBf16TileRows * kBf16PanelColumns];
  if (columns < kWordLanes) {
    multiply_rows<1>(rows, words, has_tail, a, row_step, word_step, panel, tile, kBf16PanelColumns, false);
  } else {
    multiply_rows<2>(rows, words, has_tail, a, row_step, word_step, panel, tile, kBf16PanelColumns, false);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    float* const to = c + i * c_stride;
    const float* const from = tile + i * kBf16PanelColumns;
    for (std::int64_t j = 0; j < columns; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
  }
}

// Multiplies tile after tile of a, tile_step bytes apart, by one panel.
inline void multiply_all_rows(std::int64_t rows, std::int64_t columns, std::int64_t words, bool has_tail, const char* a,
                              std::int64_t tile_step, std::int64_t row_step, std::int64_t word_step,
                              const std::uint32_t* panel, float* c, std::int64_t c_stride, bool accumulate) {
  for (std::int64_t i = 0; i < rows; i += kBf16TileRows, a += tile_step, c += kBf16TileRows * c_stride) {
    const std::int64_t count = std::min(kBf16TileRows, rows - i);
    if (columns == kBf16PanelColumns) {
      multiply_rows<2>(count, words, has_tail, a, row_step, word_step, panel, c, c_stride, accumulate);
    } else if (columns == kWordLanes) {  // low ranks
      multiply_rows<1>(count, words, has_tail, a, row_step, word_step, panel, c, c_stride, accumulate);
    } else {
      multiply_edge(count, columns, words, has_tail, a, row_step, word_step, panel, c, c_stride, accumulate);
    }
  }
}

// Rows, or lines of a row, are prefetched so far ahead of their use: they are too short for the hardware to see where
// they lead.
constexpr std::int64_t kRowsAhead = 16, kLinesAhead = 2;

// Packs the first `count` panels of b; columns beyond the last are zero. Lines side by side are read together, which is
// fastest, but those of few panels: panels can be a power of two apart, for which a cache has few sets.
template <int count>
inline void pack_side_by_side(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                              std::uint32_t* panels) {
  const std::int64_t panel_words = bf16_pairs(depth) * kBf16PanelColumns;
  __mmask32 masks[count];
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) masks[i] = first_halves(columns - i * kBf16PanelColumns);
  for (std::int64_t p = 0; p < depth; p += 2, b += 2 * b_stride, panels += kBf16PanelColumns) {
    const bool has_pair = p + 1 < depth;
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      const Bf16* const row = b + i * kBf16PanelColumns;
      _mm_prefetch(row + kRowsAhead * b_stride, _MM_HINT_T0);
      _mm_prefetch(row + (kRowsAhead + 1) * b_stride, _MM_HINT_T0);
      const __mmask32 mask_below = has_pair ? masks[i] : 0;
      const Words words =
          interleave(_mm512_maskz_loadu_epi16(masks[i], row), _mm512_maskz_loadu_epi16(mask_below, row + b_stride));
      std::uint32_t* const to = panels + i * panel_words;
      _mm512_storeu_si512(to, words.first);
      _mm512_storeu_si512(to + kWordLanes, words.second);
    }
  }
}

}  // namespace

void pack_bf16_panels(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                      std::uint32_t* panels) {
  const std::int64_t panel_words = bf16_pairs(depth) * kBf16PanelColumns;
  const auto pack = [&]<int count>() {
    pack_side_by_side<count>(b, b_stride, depth, columns, panels);
    b += count * kBf16PanelColumns;
    panels += count * panel_words;
    columns -= count * kBf16PanelColumns;
  };
  while (columns > 3 * kBf16PanelColumns) pack.template operator()<4>();
  if (columns > kBf16PanelColumns) pack.template operator()<2>();
  if (columns > 0) pack.template operator()<1>();
}

void pack_bf16_panel_transposed(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                                std::uint32_t* panel) {
  const std::int64_t words = bf16_pairs(depth);
  for (std::int64_t j = 0; j < kBf16PanelColumns; j += kWordLanes) {
    for (std::int64_t p = 0; p < depth; p += kHalfLanes) {
      const __mmask32 mask = first_halves(depth - p);
      const std::int64_t count = std::min(kWordLanes, words - p / 2);
      __m512i rows[kWordLanes];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWordLanes; ++i) {
        const Bf16* const row = b + (j + i) * b_stride + p;
        _mm_prefetch(row + kLinesAhead * kHalfLanes, _MM_HINT_T0);
        rows[i] = j + i < columns ? _mm512_maskz_loadu_epi16(mask, row) : _mm512_setzero_si512();
      }
      transpose(rows);
      std::uint32_t* const to = panel + p / 2 * kBf16PanelColumns + j;
#pragma GCC unroll 16
      for (std::int64_t q = 0; q < kWordLanes; ++q) {
        if (q < count) _mm512_storeu_si512(to + q * kBf16PanelColumns, rows[q]);
      }
    }
  }
}

void pack_bf16_tiles(const Bf16* a, std::int64_t a_stride, std::int64_t rows, std::int64_t depth,
                     std::uint32_t* tiles) {
  const std::int64_t words = bf16_pairs(depth);
  // A line of a at a time: the tiles that are written can be a power of two apart, for which a cache has few sets.
  for (std::int64_t i = 0; i < rows; i += kHalfLanes) {
    const __mmask32 mask = first_halves(rows - i);
    const Bf16* row = a + i;
    for (std::int64_t p = 0; p < depth; p += 2, row += 2 * a_stride) {
      _mm_prefetch(row + kRowsAhead * a_stride, _MM_HINT_T0);
      _mm_prefetch(row + (kRowsAhead + 1) * a_stride, _MM_HINT_T0);
      const __mmask32 mask_below = p + 1 < depth ? mask : 0;
      const Words pair =
          interleave(_mm512_maskz_loadu_epi16(mask, row), _mm512_maskz_loadu_epi16(mask_below, row + a_stride));
      alignas(64) std::uint32_t lanes[kHalfLanes];
      _mm512_store_si512(lanes, pair.first);
      _mm512_store_si512(lanes + kWordLanes, pair.second);
      for (std::int64_t t = 0; t < kHalfLanes && i + t < rows; t += kBf16TileRows) {
        std::memcpy(tiles + (i + t) * words + p / 2 * kBf16TileRows, lanes + t, kBf16TileRows * sizeof(std::uint32_t));
      }
    }
  }
}

void round_to_bf16(const float* from, std::int64_t count, Bf16* to, const Bf16* bias) {
  std::int64_t i = 0;
  // Whole vectors go without masks: the masked store was 44 % of the time on Zen 5.
  for (; i + kHalfLanes <= count; i += kHalfLanes) {
    const __m512i shift = bias == nullptr ? __m512i{} : _mm512_loadu_si512(bias + i);
    const __m512 low = _mm512_loadu_ps(from + i), high = _mm512_loadu_ps(from + i + kWordLanes);
    _mm512_storeu_si512(to + i, bias == nullptr ? rounded(low, high) : rounded_sum(low, high, shift));
  }
  if (i == count) return;
  const __mmask32 mask = first_halves(count - i);
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from + i);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kWordLanes), from + i + kWordLanes);
  const __m512i shift = bias == nullptr ? __m512i{} : _mm512_maskz_loadu_epi16(mask, bias + i);
  _mm512_mask_storeu_epi16(to + i, mask, bias == nullptr ? rounded(low, high) : rounded_sum(low, high, shift));
}

void multiply_bf16_panel(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Bf16* a,
                         std::int64_t a_stride, const std::uint32_t* panel, float* c, std::int64_t c_stride,
                         bool accumulate) {
  const auto row_step = a_stride * static_cast<std::int64_t>(sizeof(Bf16));
  multiply_all_rows(rows, columns, depth / 2, depth % 2 != 0, reinterpret_cast<const char*>(a),
                    row_step * kBf16TileRows, row_step, kWordBytes, panel, c, c_stride, accumulate);
}

void multiply_bf16_tiles(std::int64_t rows, std::int64_t columns, std::int64_t depth, const std::uint32_t* tiles,
                         const std::uint32_t* panel, float* c, std::int64_t c_stride, bool accumulate) {
  const std::int64_t words = bf16_pairs(depth), word_step = kWordBytes * kBf16TileRows;
  multiply_all_rows(rows, columns, words, false, reinterpret_cast<const char*>(tiles), words * word_step, kWordBytes,
                    word_step, panel, c, c_stride, accumulate);
}

}  // namespace teratron
HWY_POP_ATTRIBUTES

#endif
