// Linear layers of weights in tiles (tile_products.h).
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/products/tile_linear.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/products/linear.h"
#include "ops/cpu/products/linear_blocks-inl.h"
#include "ops/cpu/products/tile_products.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"
#include "tensor/weight_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVector = hn::Vec<IntTag>;

// Rounds a row of x by whole_numbers_of(), a block at a time.
template <class T>
void round_row(const T* x, std::int64_t blocks, int larger_by, const RoundedRows& to, std::int64_t row) {
  const hn::Rebind<std::int8_t, FloatTag> bytes;
  const FloatVector infinity = constant(std::numeric_limits<float>::infinity());
  for (std::int64_t b = 0; b < blocks; ++b, x += kTileColumns) {
    FloatVector largest = constant(0);
    bool is_finite = true;
    for (std::int64_t i = 0; i < kTileColumns; i += kFloatLanes) {
      const FloatVector magnitude = hn::Abs(widen(FloatTag(), x + i));
      is_finite = is_finite && hn::AllTrue(FloatTag(), hn::Lt(magnitude, infinity));
      largest = hn::Max(largest, magnitude);
    }
    const float most = is_finite ? max_of_lanes(largest) : 0;
    const bool is_zero = most < kLeastMagnitude;
    const FloatVector steps = constant(is_zero ? 0 : kMostSteps / most);
    std::int8_t* const values = to.values + (row * blocks + b) * kTileColumns;
    IntVector sum = hn::Zero(IntTag());
    for (std::int64_t i = 0; i < kTileColumns; i += kFloatLanes) {
      const FloatVector scaled = is_zero ? constant(0) : hn::Mul(widen(FloatTag(), x + i), steps);
      const IntVector whole = hn::NearestInt(scaled);
      sum = hn::Add(sum, whole);
      hn::StoreU(hn::DemoteTo(bytes, whole), bytes, values + i);
    }
    const float step = is_zero ? 0 : most / kMostSteps;
    to.steps[row * blocks + b] = is_finite ? step : std::numeric_limits<float>::quiet_NaN();
    to.offsets[row * blocks + b] = -larger_by * hn::GetLane(hn::SumOfLanes(IntTag(), sum));
  }
}

// Words hold four numbers of 8 bits: inputs with a sign, weights without one, since they are larger by larger_by().
template <int parts>
using BlockWords = IntVector[parts][kTileWords];

// A word of each of kFloatLanes rows of a tile, from `row` on.
template <class Tile>
HWY_INLINE IntVector load_word(const Tile& tile, std::int64_t row, std::int64_t word) {
  const void* const from = &tile.values[static_cast<std::size_t>(word)][static_cast<std::size_t>(row)];
  return hn::LoadU(IntTag(), static_cast<const std::int32_t*>(from));
}
HWY_INLINE IntVector low_halves(IntVector words) { return hn::And(words, hn::Set(IntTag(), 0x0F0F0F0F)); }
HWY_INLINE IntVector high_halves(IntVector words) { return low_halves(hn::ShiftRight<4>(words)); }
HWY_INLINE IntVector without_sign(IntVector words) {
  static_assert(larger_by(DType::kQ8Tile) == 0x80);
  return hn::Xor(words, hn::Set(IntTag(), static_cast<std::int32_t>(0x80808080)));
}
// Takes kFloatLanes rows of a block of 4 bits.
HWY_INLINE void split(const Q4Tile& tile, std::int64_t row, BlockWords<1>& words) {
  constexpr std::int64_t kHalf = kTileWords / 2;
#pragma GCC unroll 4
  for (std::int64_t w = 0; w < kHalf; ++w) {
    const IntVector both = load_word(tile, row, w);
    words[0][w] = low_halves(both);
    words[0][w + kHalf] = high_halves(both);
  }
}

// Adds up products in 16 bits, two of a word at a time. Weights are taken in parts of 4 bits, so that 16 bits hold the
// sum of a block: 16 * 15 * 127 < 2^15.
struct PairProducts {
  template <class Tile>
  static constexpr int kParts = std::is_same_v<Tile, Q8Tile> ? 2 : 1;

  HWY_INLINE static void take(const Q8Tile& tile, std::int64_t row, BlockWords<2>& words) {
#pragma GCC unroll 8
    for (std::int64_t w = 0; w < kTileWords; ++w) {
      const IntVector whole = without_sign(load_word(tile, row, w));
      words[0][w] = low_halves(whole);
      words[1][w] = high_halves(whole);
    }
  }
  HWY_INLINE static void take(const Q4Tile& tile, std::int64_t row, BlockWords<1>& words) { split(tile, row, words); }

#if HWY_TARGET == HWY_SCALAR  // one lane of 32 bits
  using Sums = IntVector;
  HWY_INLINE static Sums zero() { return hn::Zero(IntTag()); }
  HWY_INLINE static void add(IntVector weights, IntVector inputs, Sums& sums) {
    std::int32_t products = 0;
    for (int byte = 0; byte < 4; ++byte) {
      products += static_cast<std::int8_t>(hn::GetLane(weights) >> 8 * byte) *
                  static_cast<std::int8_t>(hn::GetLane(inputs) >> 8 * byte);
    }
    sums = hn::Add(sums, hn::Set(IntTag(), products));
  }
  HWY_INLINE static IntVector total(Sums sums) { return sums; }
#else
  using ShortTag = hn::Repartition<std::int16_t, IntTag>;
  using Sums = hn::Vec<ShortTag>;
  HWY_INLINE static Sums zero() { return hn::Zero(ShortTag()); }
  HWY_INLINE static void add(IntVector weights, IntVector inputs, Sums& sums) {
#if HWY_TARGET == HWY_AVX3
    sums = hn::Add(sums, Sums{_mm512_maddubs_epi16(weights.raw, inputs.raw)});
    asm("" : "+v"(sums.raw));  // or GCC adds up in another order, for which it lacks registers: twice as slow
#elif HWY_TARGET == HWY_AVX2
    sums = hn::Add(sums, Sums{_mm256_maddubs_epi16(weights.raw, inputs.raw)});
    asm("" : "+x"(sums.raw));
#else
    const Sums w = hn::BitCast(ShortTag(), weights), x = hn::BitCast(ShortTag(), inputs);
    const Sums even = hn::Mul(hn::And(w, hn::Set(ShortTag(), 0xFF)), hn::ShiftRight<8>(hn::ShiftLeft<8>(x)));
    sums = hn::Add(sums, hn::Add(even, hn::Mul(hn::ShiftRight<8>(w), hn::ShiftRight<8>(x))));
#endif
  }
  HWY_INLINE static IntVector total(Sums sums) {
    const IntVector words = hn::BitCast(IntTag(), sums);
    return hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(words)), hn::ShiftRight<16>(words));
  }
#endif
};

#if HWY_TARGET == HWY_AVX2

// Adds up products in 32 bits, four of a word at a time, by VPDPBUSD as AVX-VNNI has it. The compiler's own function
// for it would need a target of its own.
struct WordProducts {
  template <class Tile>
  static constexpr int kParts = 1;

  HWY_INLINE static void take(const Q8Tile& tile, std::int64_t row, BlockWords<1>& words) {
#pragma GCC unroll 8
    for (std::int64_t w = 0; w < kTileWords; ++w) words[0][w] = without_sign(load_word(tile, row, w));
  }
  HWY_INLINE static void take(const Q4Tile& tile, std::int64_t row, BlockWords<1>& words) { split(tile, row, words); }

  using Sums = IntVector;
  HWY_INLINE static Sums zero() { return hn::Zero(IntTag()); }
  HWY_INLINE static void add(IntVector weights, IntVector inputs, Sums& sums) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums.raw) : "x"(weights.raw), "x"(inputs.raw));
  }
  HWY_INLINE static IntVector total(Sums sums) { return sums; }
};

#endif

// Adds the products of block b to the sums of rows [first, first + rows).
template <class Products, int rows, int parts>
HWY_INLINE void add_block(const BlockWords<parts>& words, FloatVector weight_steps, const TileProduct& product,
                          std::int64_t first, std::int64_t b, float* sums, std::int64_t stride) {
  typename Products::Sums dots[rows][parts];
#pragma GCC unroll 8
  for (int i = 0; i < rows * parts; ++i) dots[i / parts][i % parts] = Products::zero();
#pragma GCC unroll 8
  for (std::int64_t w = 0; w < kTileWords; ++w) {
#pragma GCC unroll 4
    for (int t = 0; t < rows; ++t) {
      std::int32_t word;
      std::memcpy(&word, product.values + ((first + t) * product.blocks + b) * kTileColumns + 4 * w, sizeof(word));
      const IntVector inputs = hn::Set(IntTag(), word);
#pragma GCC unroll 2
      for (int part = 0; part < parts; ++part) Products::add(words[part][w], inputs, dots[t][part]);
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < rows; ++t) {
    const std::int64_t at = (first + t) * product.blocks + b;
    IntVector whole = hn::Add(hn::Set(IntTag(), product.offsets[at]), Products::total(dots[t][0]));
    if constexpr (parts == 2) whole = hn::Add(whole, hn::ShiftLeft<4>(Products::total(dots[t][1])));
    const FloatVector step = hn::Mul(weight_steps, constant(product.steps[at]));
    float* const sum = sums + t * stride;
    hn::StoreU(hn::MulAdd(hn::ConvertTo(FloatTag(), whole), step, hn::LoadU(FloatTag(), sum)), FloatTag(), sum);
  }
}

// Adds the products of one block to the sums of as many rows as make whole groups of `rows`, and returns how many.
template <class Products, int rows, class Tile>
HWY_INLINE std::int64_t add_rows(const Tile& tile, std::int64_t lane, const TileProduct& product, std::int64_t begin,
                                 std::int64_t end, std::int64_t b, float* sums, std::int64_t stride) {
  constexpr int kParts = Products::template kParts<Tile>;
  if (end - begin < rows) return 0;
  BlockWords<kParts> words;
  Products::take(tile, lane, words);
  const FloatVector steps = widen(FloatTag(), reinterpret_cast<const F16*>(tile.steps.data()) + lane);
  std::int64_t t = begin;
  for (; t + rows <= end; t += rows) {
    add_block<Products, rows, kParts>(words, steps, product, t, b, sums + (t - begin) * stride, stride);
  }
  return t - begin;
}

// A TileKernel. A block's weights are taken once for all rows, and again for those that make no whole group.
template <class Products, class Tile>
void multiply_tile_row(const TileProduct& product, std::int64_t tile_row, std::int64_t begin, std::int64_t end,
                       float* sums, std::int64_t stride) {
  const Tile* const tiles = static_cast<const Tile*>(product.tiles) + tile_row * product.blocks;
  for (std::int64_t t = 0; t < end - begin; ++t) std::fill_n(sums + t * stride, kTileRows, 0.0F);
  for (std::int64_t lane = 0; lane < kTileRows; lane += kFloatLanes) {
    for (std::int64_t b = 0; b < product.blocks; ++b) {
      float* const to = sums + lane;
      const std::int64_t done = add_rows<Products, 4>(tiles[b], lane, product, begin, end, b, to, stride);
      add_rows<Products, 1>(tiles[b], lane, product, begin + done, end, b, to + done * stride, stride);
    }
  }
}

template <class T>
void round_row_of(const LinearForward& args, std::int64_t row, const RoundedRows& to, std::int64_t at) {
  const std::int64_t inputs = args.x.dim(1);
  round_row(args.x.as<T>() + row * inputs, inputs / kTileColumns, larger_by(args.weight.dtype), to, at);
}

TileLinearKernels tile_linear_kernels(DType dtype, DType tiles, [[maybe_unused]] bool avx_vnni) {
  const TileKernel multiply = visit_tiles(tiles, [&]<class Tile>(Tile) -> TileKernel {
#if HWY_TARGET == HWY_AVX2
    if (avx_vnni) return &multiply_tile_row<WordProducts, Tile>;
#endif
    return &multiply_tile_row<PairProducts, Tile>;
  });
  return choose_by_storage(dtype, [&]<class T>(ElementType<T>) {
    return TileLinearKernels{&round_row_of<T>, &finish_forward_block<T>, multiply};
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(tile_linear_kernels);

constexpr std::int64_t kMostRounded = block_size(512, 5);  // rows that are rounded before they are multiplied
constexpr std::int64_t kTaskRows = block_size(64, 3), kTaskTileRows = block_size(4, 1);
constexpr std::int64_t kTaskColumns = kTaskTileRows * kTileRows;
constexpr std::int64_t kRoundedGrain = block_size(1 << 15, 64);  // values that a thread rounds at a time

// Steps, offsets and values of a row, in floats.
std::int64_t rounded_floats(std::int64_t inputs) { return 2 * (inputs / kTileColumns) + inputs / 4; }

// Rounds and multiplies rows [begin, end), of which there are at most kMostRounded.
void multiply_some(const LinearForward& args, const TileLinearKernels& kernels, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = end - begin, inputs = args.x.dim(1), outputs = args.y.dim(1);
  const std::int64_t blocks = inputs / kTileColumns;
  float* const memory = scratch_floats(Scratch::kPanels, rows * rounded_floats(inputs));
  const RoundedRows rounded{.values = reinterpret_cast<std::int8_t*>(memory + 2 * rows * blocks),
                            .steps = memory,
                            .offsets = reinterpret_cast<std::int32_t*>(memory + rows * blocks)};
  parallel_for(rows, std::max<std::int64_t>(1, kRoundedGrain / inputs), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) kernels.round(args, begin + t, rounded, t);
  });
  const TileProduct product{args.weight.data, blocks, rounded.values, rounded.steps, rounded.offsets};
  const std::int64_t tile_rows = args.weight.dim(0);
  const std::int64_t across = (tile_rows + kTaskTileRows - 1) / kTaskTileRows,
                     down = (rows + kTaskRows - 1) / kTaskRows;
  run_in_parallel(across * down, [&](std::int64_t task) {
    const std::int64_t first_tile = task / down * kTaskTileRows;
    const std::int64_t last_tile = std::min(tile_rows, first_tile + kTaskTileRows);
    const std::int64_t first = task % down * kTaskRows, last = std::min(rows, first + kTaskRows);
    float* const sums = scratch_floats(Scratch::kTileB, (last - first) * kTaskColumns);
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
      kernels.multiply(product, tile, first, last, sums + (tile - first_tile) * kTileRows, kTaskColumns);
    }
    const GemmBlock block{begin + first, begin + last, first_tile * kTileRows,
                          std::min(outputs, last_tile * kTileRows)};
    kernels.finish(args, block, {sums, kTaskColumns});
  });
}

}  // namespace

void include_tile_linear(const WorkShapes::Product& product, ScratchSizes& sizes) {
  sizes.include(Scratch::kPanels, std::min(product.rows, kMostRounded) * rounded_floats(product.inputs));
  sizes.include(Scratch::kTileB, std::min(product.rows, kTaskRows) * kTaskColumns);
}

void CpuBackend::do_tile_linear_forward(const TileLinearForward& tiled) {
  const LinearForward& args = tiled.linear;
  auto kernels =
      HWY_DYNAMIC_DISPATCH(tile_linear_kernels)(args.x.dtype, args.weight.dtype, vnni_products_ && has_avx_vnni());
  if (vnni_products_ && has_vnni_products()) kernels.multiply = vnni_kernel(args.weight.dtype);
  const std::vector<GemmRange> ranges = text_ranges(args.lengths, args.x.dim(0));
  clear_padding(args.y, ranges);
  clear_padding(args.activated, ranges);
  for (const GemmRange& range : ranges) {
    for (std::int64_t begin = range.begin; begin < range.end; begin += kMostRounded) {
      multiply_some(args, kernels, begin, std::min(range.end, begin + kMostRounded));
    }
  }
}

}  // namespace teratron
#endif  // HWY_ONCE
