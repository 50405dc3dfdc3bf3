// Linear layers of weights in tiles (tile_products.h).
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/products/tile_linear.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
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

// whole_numbers_of(), a block at a time.
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
    if (to.pairs != nullptr) {
      std::int16_t* const pairs = to.pairs + (row * blocks + b) * kTileColumns;
      for (std::int64_t i = 0; i < kTileColumns; ++i) pairs[(i & ~3) + (i & 1) * 2 + (i >> 1 & 1)] = values[i];
    }
    const float step = is_zero ? 0 : most / kMostSteps;
    to.steps[row * blocks + b] = is_finite ? step : std::numeric_limits<float>::quiet_NaN();
    to.offsets[row * blocks + b] = -larger_by * hn::GetLane(hn::SumOfLanes(IntTag(), sum));
  }
}

#if HWY_TARGET == HWY_SCALAR  // one lane of 32 bits

struct Word {
  std::int32_t bits;
};
HWY_INLINE Word split(IntVector word) { return {hn::GetLane(word)}; }
HWY_INLINE void add_products(Word a, Word b, IntVector& sum, IntVector& /*sum1*/) {
  std::int32_t products = 0;
  for (int byte = 0; byte < 4; ++byte) {
    products += static_cast<std::int8_t>(a.bits >> 8 * byte) * static_cast<std::int8_t>(b.bits >> 8 * byte);
  }
  sum = hn::Add(sum, hn::Set(IntTag(), products));
}
HWY_INLINE IntVector total(IntVector sum, IntVector /*sum1*/) { return sum; }
// Word `at` of the rows, the same in every lane.
HWY_INLINE Word word_of(const TileProduct& product, std::int64_t at) {
  Word word;
  std::memcpy(&word.bits, product.values + 4 * at, sizeof(word.bits));
  return word;
}
constexpr bool kTakesPairs = false;

#else

using ShortTag = hn::Repartition<std::int16_t, IntTag>;

// The signed bytes of words, as numbers of 16 bits: bytes 0 and 2, bytes 1 and 3.
struct Word {
  hn::Vec<ShortTag> even, odd;
};
HWY_INLINE Word split(IntVector word) {
  const auto shorts = hn::BitCast(ShortTag(), word);
  return {hn::ShiftRight<8>(hn::ShiftLeft<8>(shorts)), hn::ShiftRight<8>(shorts)};
}
HWY_INLINE void add_products(const Word& a, const Word& b, IntVector& sum0, IntVector& sum1) {
  sum0 = hn::ReorderWidenMulAccumulate(IntTag(), a.even, b.even, sum0, sum1);
  sum0 = hn::ReorderWidenMulAccumulate(IntTag(), a.odd, b.odd, sum0, sum1);
}
HWY_INLINE IntVector total(IntVector sum0, IntVector sum1) { return hn::RearrangeToOddPlusEven(sum0, sum1); }
// Word `at` of the rows, the same in every lane.
HWY_INLINE Word word_of(const TileProduct& product, std::int64_t at) {
  std::int32_t even, odd;
  std::memcpy(&even, product.pairs + 4 * at, sizeof(even));
  std::memcpy(&odd, product.pairs + 4 * at + 2, sizeof(odd));
  return {hn::BitCast(ShortTag(), hn::Set(IntTag(), even)), hn::BitCast(ShortTag(), hn::Set(IntTag(), odd))};
}
constexpr bool kTakesPairs = true;

#endif

// Word `w` of the rows of a tile from `row` on, a lane each.
HWY_INLINE Word word_of(const Q8Tile& tile, std::int64_t w, std::int64_t row) {
  return split(hn::LoadU(IntTag(), reinterpret_cast<const std::int32_t*>(&tile.values[w][row])));
}
HWY_INLINE Word word_of(const Q4Tile& tile, std::int64_t w, std::int64_t row) {
  constexpr std::int64_t kHalf = kTileWords / 2;
  const IntVector both = hn::LoadU(IntTag(), reinterpret_cast<const std::int32_t*>(&tile.values[w % kHalf][row]));
  const IntVector low = hn::Set(IntTag(), 0x0F0F0F0F);
  return split(hn::And(w < kHalf ? both : hn::ShiftRight<4>(both), low));
}

constexpr int larger_by(const Q8Tile& /*tile*/) { return 0; }
constexpr int larger_by(const Q4Tile& /*tile*/) { return kQ4Zero; }

template <int rows, class Tile>
HWY_INLINE void multiply_rows(const TileProduct& product, const Tile* tiles, std::int64_t first, float* sums,
                              std::int64_t stride) {
  const std::int64_t blocks = product.blocks;
  for (std::int64_t lane = 0; lane < kTileRows; lane += kFloatLanes) {
    FloatVector sum[rows];
#pragma GCC unroll 4
    for (int t = 0; t < rows; ++t) sum[t] = constant(0);
    for (std::int64_t b = 0; b < blocks; ++b) {
      IntVector dots[rows], more[rows];
#pragma GCC unroll 4
      for (int t = 0; t < rows; ++t) {
        dots[t] = hn::Zero(IntTag());
        more[t] = hn::Zero(IntTag());
      }
#pragma GCC unroll 8
      for (std::int64_t w = 0; w < kTileWords; ++w) {
        const Word weights = word_of(tiles[b], w, lane);
#pragma GCC unroll 4
        for (int t = 0; t < rows; ++t) {
          add_products(weights, word_of(product, ((first + t) * blocks + b) * kTileWords + w), dots[t], more[t]);
        }
      }
      const FloatVector weight_steps = widen(FloatTag(), reinterpret_cast<const F16*>(tiles[b].steps.data()) + lane);
#pragma GCC unroll 4
      for (int t = 0; t < rows; ++t) {
        const std::int64_t at = (first + t) * blocks + b;
        const IntVector products = hn::Add(total(dots[t], more[t]), hn::Set(IntTag(), product.offsets[at]));
        const FloatVector step = hn::Mul(weight_steps, constant(product.steps[at]));
        sum[t] = hn::MulAdd(hn::ConvertTo(FloatTag(), products), step, sum[t]);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < rows; ++t) hn::StoreU(sum[t], FloatTag(), sums + t * stride + lane);
  }
}

template <class Tile>
void multiply_tile_row(const TileProduct& product, std::int64_t tile_row, std::int64_t begin, std::int64_t end,
                       float* sums, std::int64_t stride) {
  const Tile* const tiles = static_cast<const Tile*>(product.tiles) + tile_row * product.blocks;
  std::int64_t t = begin;
  for (; t + 4 <= end; t += 4) multiply_rows<4>(product, tiles, t, sums + (t - begin) * stride, stride);
  for (; t < end; ++t) multiply_rows<1>(product, tiles, t, sums + (t - begin) * stride, stride);
}

template <class T>
void round_row_of(const LinearForward& args, std::int64_t row, int larger_by, const RoundedRows& to, std::int64_t at) {
  const std::int64_t inputs = args.x.dim(1);
  round_row(args.x.as<T>() + row * inputs, inputs / kTileColumns, larger_by, to, at);
}

TileLinearKernels tile_linear_kernels(DType dtype, DType tiles) {
  const TileKernel kernel = visit_tiles(tiles, []<class Tile>(Tile tile) {
    return TileKernel{&multiply_tile_row<Tile>, larger_by(tile), kTakesPairs};
  });
  return choose_by_storage(dtype, [&]<class T>(ElementType<T>) {
    return TileLinearKernels{&round_row_of<T>, &finish_forward_block<T>, kernel};
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

// Steps, offsets, values and pairs of a row, in floats.
std::int64_t rounded_floats(std::int64_t inputs, bool has_pairs) {
  return 2 * (inputs / kTileColumns) + inputs / 4 + (has_pairs ? inputs / 2 : 0);
}

// Rounds and multiplies rows [begin, end), of which there are at most kMostRounded.
void multiply_some(const LinearForward& args, const TileLinearKernels& kernels, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = end - begin, inputs = args.x.dim(1), outputs = args.y.dim(1);
  const std::int64_t blocks = inputs / kTileColumns;
  float* const memory = scratch_floats(Scratch::kPanels, rows * rounded_floats(inputs, kernels.kernel.takes_pairs));
  float *const pairs = memory + 2 * rows * blocks, *const values =
                                                       pairs + (kernels.kernel.takes_pairs ? rows * inputs / 2 : 0);
  const RoundedRows rounded{.values = reinterpret_cast<std::int8_t*>(values),
                            .pairs = kernels.kernel.takes_pairs ? reinterpret_cast<std::int16_t*>(pairs) : nullptr,
                            .steps = memory,
                            .offsets = reinterpret_cast<std::int32_t*>(memory + rows * blocks)};
  parallel_for(rows, std::max<std::int64_t>(1, kRoundedGrain / inputs), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) kernels.round(args, begin + t, kernels.kernel.larger_by, rounded, t);
  });
  const TileProduct product{args.weight.data, blocks, rounded.values, rounded.pairs, rounded.steps, rounded.offsets};
  const std::int64_t tile_rows = args.weight.dim(0);
  const std::int64_t across = (tile_rows + kTaskTileRows - 1) / kTaskTileRows,
                     down = (rows + kTaskRows - 1) / kTaskRows;
  run_in_parallel(across * down, [&](std::int64_t task) {
    const std::int64_t first_tile = task / down * kTaskTileRows;
    const std::int64_t last_tile = std::min(tile_rows, first_tile + kTaskTileRows);
    const std::int64_t first = task % down * kTaskRows, last = std::min(rows, first + kTaskRows);
    float* const sums = scratch_floats(Scratch::kTileB, (last - first) * kTaskColumns);
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
      kernels.kernel.multiply(product, tile, first, last, sums + (tile - first_tile) * kTileRows, kTaskColumns);
    }
    const GemmBlock block{begin + first, begin + last, first_tile * kTileRows,
                          std::min(outputs, last_tile * kTileRows)};
    kernels.finish(args, block, {sums, kTaskColumns});
  });
}

}  // namespace

void include_tile_linear(const WorkShapes::Product& product, bool vnni_products, ScratchSizes& sizes) {
  sizes.include(Scratch::kPanels,
                std::min(product.rows, kMostRounded) * rounded_floats(product.inputs, !vnni_products));
  sizes.include(Scratch::kTileB, std::min(product.rows, kTaskRows) * kTaskColumns);
}

void CpuBackend::do_tile_linear_forward(const TileLinearForward& tiled) {
  const LinearForward& args = tiled.linear;
  auto kernels = HWY_DYNAMIC_DISPATCH(tile_linear_kernels)(args.x.dtype, args.weight.dtype);
  if (vnni_products_) kernels.kernel = vnni_kernel(args.weight.dtype);
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
