// Kernels of a bf16 matrix product c (+)= a b with fp32 sums: on x86 by the instruction VDPBF16PS of AVX512-BF16 (Zen
// 4, Cooper Lake, Sapphire Rapids and later; bf16_kernels.cc, bf16_rows.cc), on Zen 4 and 5 twice as fast as those of
// fp32 (simd/gemm_kernel-inl.h), on Sapphire Rapids slower (instructions.cc); on Arm by BFMMLA (Neoverse N2, V1 and
// later; bf16_neon.cc), which ran in an emulator alone.
//
// A word is the pair of values of two neighbouring depths, the earlier one in its low half. VDPBF16PS multiplies a word
// of a with words of b: word (q, j) of a panel of b holds b(2 q, j) and b(2 q + 1, j). BFMMLA multiplies two words of
// each of two rows of a with those of two columns of b: in a panel, the two words of four depths stand together, column
// after column. Beyond the last depth there are zeros.
//
// VDPBF16PS adds the product of the high halves to the sum and then that of the low halves. Each addition rounds once
// to nearest even (measured: the bits of two fused multiply-adds). It ignores MXCSR: subnormal inputs, products and
// sums count as zero. This changes a result by at most 2^-126 a term, far below the rounding of the fp32 sums that
// training meets. Infinities and NaN propagate.
//
// BFMMLA adds the product of the high halves to that of the low halves and then both to the sum, words in their order.
// Each addition rounds once, to odd: a result that is not exact gets an odd last bit, which moves it by less than one
// last bit, where rounding to nearest moves it by at most half of one. Subnormal values count as zero here, too.
#pragma once

#include <cstdint>

#include "base/block_size.h"
#include "base/float_types.h"

namespace teratron {

// Whether this processor has the instruction. The functions below may be called only then.
bool has_bf16_products();

// A tile of c: 16 of the 32 registers hold its sums. kBf16Depths are multiplied at a time.
#if defined(__aarch64__)
inline constexpr const char* kBf16Instruction = "BFMMLA";
constexpr std::int64_t kBf16TileRows = block_size(8, 4), kBf16PanelColumns = 8, kBf16Depths = 4;
#else
inline constexpr const char* kBf16Instruction = "AVX512-BF16";
constexpr std::int64_t kBf16TileRows = block_size(8, 2), kBf16PanelColumns = 32, kBf16Depths = 2;
#endif

// Words of a column of this depth.
constexpr std::int64_t bf16_pairs(std::int64_t depth) {
  return (depth + kBf16Depths - 1) / kBf16Depths * (kBf16Depths / 2);
}

// Panels of b[depth, columns], one after the other, each of bf16_pairs(depth) * kBf16PanelColumns words; columns beyond
// the last are zero.
void pack_bf16_panels(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                      std::uint32_t* panels);

// One panel of b transposed, columns <= kBf16PanelColumns: element (p, j) is at b[j * b_stride + p].
void pack_bf16_panel_transposed(const Bf16* b, std::int64_t b_stride, std::int64_t depth, std::int64_t columns,
                                std::uint32_t* panel);

// Rows of a transposed a[rows, depth], element (i, p) at a[p * a_stride + i], tile by tile, each as a panel of
// kBf16TileRows columns. A tile has bf16_pairs(depth) * kBf16TileRows words.
void pack_bf16_tiles(const Bf16* a, std::int64_t a_stride, std::int64_t rows, std::int64_t depth, std::uint32_t* tiles);

// A row, plus `bias` unless that is null, rounded to nearest even. Subnormal values become zero on x86.
void round_to_bf16(const float* from, std::int64_t count, Bf16* to, const Bf16* bias = nullptr);

// c[rows, columns] (+)= a[rows, depth] panel[depth, columns] for at most kBf16PanelColumns columns. Element (i, p) of a
// is at a[i * a_stride + p].
void multiply_bf16_panel(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Bf16* a,
                         std::int64_t a_stride, const std::uint32_t* panel, float* c, std::int64_t c_stride,
                         bool accumulate);

// c[rows, columns] = a[rows, depth] b[columns, depth]^T, nothing packed. On x86, lane l of 16 sums the pairs l, l + 16,
// .. of a row, and the lanes are added in a fixed order; on Arm, a sum takes the pairs in order. So a row's bits do not
// depend on the rows beside it.
void multiply_bf16_rows(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Bf16* a, const Bf16* b,
                        float* c, std::int64_t c_stride);

// Multiplies rows of a that pack_bf16_tiles() packed.
void multiply_bf16_tiles(std::int64_t rows, std::int64_t columns, std::int64_t depth, const std::uint32_t* tiles,
                         const std::uint32_t* panel, float* c, std::int64_t c_stride, bool accumulate);

}  // namespace teratron
