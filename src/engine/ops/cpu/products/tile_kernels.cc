#include "ops/cpu/products/tile_kernels.h"

#include <algorithm>
#include <cstring>

#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/products/emulated_tiles.h"
#include "ops/cpu/products/tile_unit.h"
#include "ops/cpu/scratch.h"

namespace teratron {
namespace {

// A panel of this depth (32 KB) should stay in the first-level cache (48 KB on processors with AMX) beside the rows of
// a that come from the second. Not measured, for want of such a processor.
constexpr std::int64_t kTileMaxDepth = block_size(512, 2 * kTileDepth);
constexpr std::int64_t kTileMaxPanelWords = block_size(2 << 20, 64);  // as of bf16 without tiles
constexpr std::int64_t kTileWords = kTileDepth / 2, kHalfBytes = 2;
static_assert(kBf16PanelColumns == 2 * kTileColumnsOfC);

// Bytes between rows.
constexpr std::int64_t kPanelStep = kBf16PanelColumns * 4, kTailStep = kTileDepth * kHalfBytes;

// The numbers of tiles.
constexpr int kLeft = 0, kRight = 1, kBelowLeft = 2, kBelowRight = 3, kRows = 4, kRowsBelow = 5, kColumns = 6,
              kColumnsRight = 7;

// Values of 16 bits: (p, j) at data[p * depth_step + j * step].
struct Halves {
  const std::uint16_t* data;
  std::int64_t depth_step, step, depth, count;

  std::uint32_t at(std::int64_t p, std::int64_t j) const {
    return p < depth && j < count ? data[p * depth_step + j * step] : 0;
  }
  std::uint32_t word(std::int64_t q, std::int64_t j) const { return at(2 * q + 1, j) << 16 | at(2 * q, j); }
};

// Columns of b from j on, at most a panel of them, for some depths.
void pack_panel(const GemmOperand& b, const GemmDepths& depths, std::int64_t j, std::int64_t columns,
                std::uint32_t* panel, bool in_vectors) {
  const std::int64_t p = depths.begin, depth = depths.count,
                     offset = b.transposed ? j * b.stride + p : p * b.stride + j;
  if (!in_vectors) {
    const auto* const data = static_cast<const std::uint16_t*>(b.data) + offset;
    const Halves halves{data, b.transposed ? 1 : b.stride, b.transposed ? b.stride : 1, depth, columns};
    for (std::int64_t word = 0; word < depths.words * kBf16PanelColumns; ++word) {
      panel[word] = halves.word(word / kBf16PanelColumns, word % kBf16PanelColumns);
    }
    return;
  }
  const auto* const data = static_cast<const Bf16*>(b.data) + offset;  // or f16, which moves alike
  if (b.transposed) {
    pack_bf16_panel_transposed(data, b.stride, depth, columns, panel);
  } else {
    pack_bf16_panels(data, b.stride, depth, columns, panel);
  }
  std::fill(panel + bf16_pairs(depth) * kBf16PanelColumns, panel + depths.words * kBf16PanelColumns, 0U);
}

// A block's rows of a, in tiles of kTileDepth depths: row i of tile q is at data + i * row_step + q * kTailStep, in
// bytes, but of the last tile at tail + i * kTailStep if there is a tail.
struct RowsOfA {
  const char* data;
  std::int64_t row_step;
  const char* tail;
  std::int64_t tiles;

  RowsOfA from_row(std::int64_t i) const {
    return {data + i * row_step, row_step, tail == nullptr ? nullptr : tail + i * kTailStep, tiles};
  }
};

// Where they are; the last depths, if they are not a whole tile, with zeros behind them.
RowsOfA rows_in_place(const GemmOperand& a, const GemmBlock& block, const GemmDepths& depths) {
  const char* const data = static_cast<const char*>(a.data) + (block.row_begin * a.stride + depths.begin) * kHalfBytes;
  const std::int64_t row_step = a.stride * kHalfBytes, whole = depths.count / kTileDepth;
  const auto tail_bytes = static_cast<std::size_t>(depths.count % kTileDepth * kHalfBytes);
  if (tail_bytes == 0) return {data, row_step, nullptr, whole};
  char* const tail = reinterpret_cast<char*>(scratch_floats(Scratch::kTileA, block.rows() * kTileWords));
  for (std::int64_t i = 0; i < block.rows(); ++i) {
    std::memcpy(tail + i * kTailStep, data + i * row_step + whole * kTailStep, tail_bytes);
    std::memset(tail + i * kTailStep + tail_bytes, 0, static_cast<std::size_t>(kTailStep) - tail_bytes);
  }
  return {data, row_step, tail, whole + 1};
}

// The other way round, where a is transposed.
RowsOfA rows_packed(const GemmOperand& a, const GemmBlock& block, const GemmDepths& depths, bool in_vectors) {
  const std::int64_t stride = depths.words + kTileWords;  // of which no power of two is a multiple, for the caches
  auto* const to = reinterpret_cast<std::uint32_t*>(scratch_floats(Scratch::kTileA, block.rows() * stride));
  const GemmOperand part{static_cast<const Bf16*>(a.data) + depths.begin * a.stride + block.row_begin, a.stride, true};
  pack_tile_rows(part, block.rows(), depths.count, depths.words, to, stride, in_vectors);
  return {reinterpret_cast<const char*>(to), stride * 4, nullptr, depths.words / kTileWords};
}

// c[rows, columns] (+)= a b for as many rows and columns as the unit's shapes have.
template <int row_tiles, int column_tiles, class Unit>
void multiply_tiles(Unit& unit, const RowsOfA& a, const std::uint32_t* panel, float* c, std::int64_t c_stride,
                    bool accumulate) {
  constexpr bool kHasRight = column_tiles == 2, kHasBelow = row_tiles == 2;
  const std::int64_t c_step = c_stride * static_cast<std::int64_t>(sizeof(float));
  const auto for_each_sum = [&](const auto& visit) {
    float* const below = c + kTileRowsOfC * c_stride;
    visit.template operator()<kLeft>(c);
    if constexpr (kHasRight) visit.template operator()<kRight>(c + kTileColumnsOfC);
    if constexpr (kHasBelow) visit.template operator()<kBelowLeft>(below);
    if constexpr (kHasBelow && kHasRight) visit.template operator()<kBelowRight>(below + kTileColumnsOfC);
  };
  for_each_sum([&]<int tile>(float* from) {
    if (accumulate) {
      unit.template load<tile>(from, c_step);
    } else {
      unit.template zero<tile>();
    }
  });
  for (std::int64_t q = 0; q < a.tiles; ++q, panel += kTileWords * kBf16PanelColumns) {
    const bool is_tail = a.tail != nullptr && q + 1 == a.tiles;
    const char* const rows = is_tail ? a.tail : a.data + q * kTailStep;
    const std::int64_t row_step = is_tail ? kTailStep : a.row_step;
    unit.template load<kColumns>(panel, kPanelStep);
    unit.template load<kRows>(rows, row_step);
    unit.template multiply<kLeft, kRows, kColumns>();
    if constexpr (kHasRight) {
      unit.template load<kColumnsRight>(panel + kTileColumnsOfC, kPanelStep);
      unit.template multiply<kRight, kRows, kColumnsRight>();
    }
    if constexpr (kHasBelow) {
      unit.template load<kRowsBelow>(rows + kTileRowsOfC * row_step, row_step);
      unit.template multiply<kBelowLeft, kRowsBelow, kColumns>();
      if constexpr (kHasRight) unit.template multiply<kBelowRight, kRowsBelow, kColumnsRight>();
    }
  }
  for_each_sum([&]<int tile>(float* to) { unit.template store<tile>(to, c_step); });
}

// For at most two by two tiles of c.
TileShapes shapes_of(std::int64_t rows, std::int64_t columns) {
  TileShapes shapes;
  const auto set = [&](int tile, std::int64_t tile_rows, std::int64_t row_bytes) {
    if (tile_rows > 0 && row_bytes > 0) shapes.set(tile, tile_rows, row_bytes);
  };
  const std::int64_t above = std::min(rows, kTileRowsOfC), below = rows - above;
  const std::int64_t left = std::min(columns, kTileColumnsOfC) * 4, right = columns * 4 - left;
  set(kLeft, above, left);
  set(kRight, above, right);
  set(kBelowLeft, below, left);
  set(kBelowRight, below, right);
  set(kRows, above, kTailStep);
  set(kRowsBelow, below, kTailStep);
  set(kColumns, kTileWords, left);
  set(kColumnsRight, kTileWords, right);
  return shapes;
}

// A unit and what it is configured for, which is slow: only where shapes change.
template <class Unit>
class Multiplier {
 public:
  // c[rows, columns] (+)= a b for at most two by two tiles.
  void multiply(std::int64_t rows, std::int64_t columns, const RowsOfA& a, const std::uint32_t* panel, float* c,
                std::int64_t c_stride, bool accumulate) {
    if (rows != rows_ || columns != columns_) unit_.configure(shapes_of(rows_ = rows, columns_ = columns));
    const auto multiply = [&]<int row_tiles>() {
      if (columns > kTileColumnsOfC) return multiply_tiles<row_tiles, 2>(unit_, a, panel, c, c_stride, accumulate);
      return multiply_tiles<row_tiles, 1>(unit_, a, panel, c, c_stride, accumulate);
    };
    if (rows > kTileRowsOfC) return multiply.template operator()<2>();
    multiply.template operator()<1>();
  }

 private:
  Unit unit_;
  std::int64_t rows_ = 0, columns_ = 0;
};

template <class Unit>
GemmSums multiply_tile_block(const Gemm& gemm, const GemmChunk& chunk, const GemmBlock& block) {
  constexpr std::int64_t kStrip = 2 * kTileRowsOfC;
  const GemmSums sums = sums_of(gemm, block, kBf16PanelColumns);
  const bool in_vectors = has_bf16_products();
  const std::int64_t rows = block.rows(), whole = rows / kStrip * kStrip;
  Multiplier<Unit> multiplier;
  for (const GemmDepths& depths : chunk.depths) {
    const bool accumulate = gemm.accumulate || !depths.is_first();
    const std::uint32_t* const panels =
        static_cast<const std::uint32_t*>(chunk.panels) + chunk.words_before(depths, kBf16PanelColumns);
    const RowsOfA a =
        gemm.a.transposed ? rows_packed(gemm.a, block, depths, in_vectors) : rows_in_place(gemm.a, block, depths);
    // Rows that are fewer than two tiles come last, so that shapes seldom change.
    for (const GemmRun part : {GemmRun{0, whole}, GemmRun{whole, rows}}) {
      if (part.count() == 0) continue;
      for (std::int64_t j = block.column_begin; j < block.column_end; j += kBf16PanelColumns) {
        const std::uint32_t* const panel = panels + (j - chunk.column_begin) * depths.words;
        const std::int64_t columns = std::min(kBf16PanelColumns, block.column_end - j);
        float* const c = sums.data + j - block.column_begin;
        for (std::int64_t i = part.begin; i < part.end; i += kStrip) {
          multiplier.multiply(std::min(kStrip, part.end - i), columns, a.from_row(i), panel, c + i * sums.stride,
                              sums.stride, accumulate);
        }
      }
    }
  }
  return sums;
}

template <template <class> class Unit>
GemmKernels kernels_with(DType dtype) {
  return {.tile_rows = block_size(kTileRowsOfC, 2 * kTileRowsOfC),
          .panel_columns = kBf16PanelColumns,
          .word_depths = 2,
          .depth_step = kTileDepth,
          .max_depth = kTileMaxDepth,
          .max_panel_words = kTileMaxPanelWords,
          .pack_columns = [](const GemmOperand& b, const GemmChunk& chunk, std::int64_t begin,
                             std::int64_t end) { pack_tile_columns(b, chunk, begin, end, has_bf16_products()); },
          .multiply_block = dtype == DType::kBF16 ? &multiply_tile_block<Unit<Bf16>> : &multiply_tile_block<Unit<F16>>,
          .tail_words = kTileWords};
}

}  // namespace

void pack_tile_columns(const GemmOperand& b, const GemmChunk& chunk, std::int64_t begin, std::int64_t end,
                       bool in_vectors) {
  for (const GemmDepths& depths : chunk.depths) {
    std::uint32_t* const panels =
        static_cast<std::uint32_t*>(chunk.panels) + chunk.words_before(depths, kBf16PanelColumns);
    for (std::int64_t j = begin; j < end; j += kBf16PanelColumns) {
      pack_panel(b, depths, j, std::min(kBf16PanelColumns, end - j), panels + (j - chunk.column_begin) * depths.words,
                 in_vectors);
    }
  }
}

void pack_tile_rows(const GemmOperand& a, std::int64_t rows, std::int64_t depth, std::int64_t words, std::uint32_t* to,
                    std::int64_t to_stride, bool in_vectors) {
  if (in_vectors) return pack_bf16_rows(static_cast<const Bf16*>(a.data), a.stride, rows, depth, words, to, to_stride);
  const Halves halves{static_cast<const std::uint16_t*>(a.data), a.stride, 1, depth, rows};
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t q = 0; q < words; ++q) to[i * to_stride + q] = halves.word(q, i);
  }
}

GemmKernels tile_gemm_kernels(DType dtype, GemmProducts products) {
#if defined(__x86_64__)
  if (products == GemmProducts::kTiles) return kernels_with<AmxTiles>(dtype);
#endif
  if (products != GemmProducts::kEmulatedTiles) throw InternalError("no tiles");
  return kernels_with<EmulatedTiles>(dtype);
}

}  // namespace teratron
