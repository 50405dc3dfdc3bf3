// Written in intrinsics: a Highway target with AVX512-VNNI asks for more than that. The functions are compiled for it
// whatever the rest of the program is compiled for, and called only where the processor has it.
#include "ops/cpu/products/tile_products.h"
#include "tensor/weight_tiles.h"

#if defined(__x86_64__)

// GCC warns falsely about an unused operand of its own intrinsics.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <cpuid.h>
#include <immintrin.h>

#include <cstring>

#include "hwy/base.h"

namespace teratron {

bool has_vnni_products() {
  static const bool has = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return has;
}

bool has_avx_vnni() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
  }();
  return has;
}

}  // namespace teratron

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
namespace teratron {
namespace {

inline __m512i broadcast_word(const std::int8_t* values) {
  std::int32_t word;
  std::memcpy(&word, values, sizeof(word));
  return _mm512_set1_epi32(word);
}

// The words of a tile, all 16 rows of each, without sign, as VPDPBUSD takes one side.
inline void load_words(const Q8Tile& tile, __m512i (&words)[kTileWords]) {
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(larger_by(DType::kQ8Tile)));
#pragma GCC unroll 8
  for (std::size_t w = 0; w < kTileWords; ++w) {
    words[w] = _mm512_xor_si512(_mm512_loadu_si512(&tile.values[w]), sign);
  }
}
inline void load_words(const Q4Tile& tile, __m512i (&words)[kTileWords]) {
  const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (std::size_t w = 0; w < kTileWords / 2; ++w) {
    const __m512i both = _mm512_loadu_si512(&tile.values[w]);
    words[w] = _mm512_and_si512(both, low);
    words[w + kTileWords / 2] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
  }
}

template <int rows, class Tile>
inline void multiply_rows(const TileProduct& product, const Tile* tiles, std::int64_t begin, float* sums,
                          std::int64_t stride) {
  const std::int64_t blocks = product.blocks;
  const std::int8_t* const values = product.values + begin * blocks * kTileColumns;
  const float* const steps = product.steps + begin * blocks;
  const std::int32_t* const offsets = product.offsets + begin * blocks;
  __m512 sum[rows];
#pragma GCC unroll 8
  for (int t = 0; t < rows; ++t) sum[t] = _mm512_setzero_ps();
  for (std::int64_t b = 0; b < blocks; ++b) {
    __m512i words[kTileWords], dots[rows];
    load_words(tiles[b], words);
#pragma GCC unroll 8
    for (int t = 0; t < rows; ++t) {
      dots[t] = _mm512_set1_epi32(offsets[t * blocks + b]);
      const std::int8_t* const of_row = values + (t * blocks + b) * kTileColumns;
#pragma GCC unroll 8
      for (int w = 0; w < kTileWords; ++w)
        dots[t] = _mm512_dpbusd_epi32(dots[t], words[w], broadcast_word(of_row + 4 * w));
    }
    const __m512 weight_steps = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(&tiles[b].steps)));
#pragma GCC unroll 8
    for (int t = 0; t < rows; ++t) {
      const __m512 step = _mm512_mul_ps(weight_steps, _mm512_set1_ps(steps[t * blocks + b]));
      sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[t]), step, sum[t]);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < rows; ++t) _mm512_storeu_ps(sums + t * stride, sum[t]);
}

template <class Tile>
void multiply_by_vnni(const TileProduct& product, std::int64_t tile_row, std::int64_t begin, std::int64_t end,
                      float* sums, std::int64_t stride) {
  const Tile* const tiles = static_cast<const Tile*>(product.tiles) + tile_row * product.blocks;
  std::int64_t t = begin;
  const auto take = [&]<int rows>() {
    for (; t + rows <= end; t += rows) multiply_rows<rows>(product, tiles, t, sums + (t - begin) * stride, stride);
  };
  take.template operator()<8>();
  take.template operator()<4>();
  take.template operator()<2>();
  take.template operator()<1>();
}

}  // namespace

TileKernel vnni_kernel(DType tiles) {
  return visit_tiles(tiles, []<class Tile>(Tile) -> TileKernel { return &multiply_by_vnni<Tile>; });
}

}  // namespace teratron
HWY_POP_ATTRIBUTES

#else

namespace teratron {

bool has_vnni_products() { return false; }
bool has_avx_vnni() { return false; }
TileKernel vnni_kernel(DType /*tiles*/) { throw InternalError("a processor without AVX512-VNNI"); }

}  // namespace teratron

#endif
