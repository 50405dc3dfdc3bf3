// Cuts of the parallel product of gemm.h: b goes into panels that all threads share, then blocks of c are computed from
// them. Kernels are in gemm_float.cc and gemm_bf16.cc.
#include "ops/cpu/products/gemm.h"

#include <unistd.h>

#include <algorithm>

#include "base/block_size.h"
#include "base/round_up.h"

namespace teratron {
namespace {

// kMaxBlockRows: of a block, at most. kUsualColumns: of a block whose sums are in scratch memory, at most; and of a
// packed block of a product with a c, at least. kTransposedColumns: of a block that packs rows of a, at most.
constexpr std::int64_t kMaxBlockRows = block_size(96, 1), kUsualColumns = block_size(512, 1),
                       kTransposedColumns = block_size(768, 1);
// Columns that a thread packs at a time, whole panels on every target. More are read faster, but all threads should
// have some.
constexpr std::int64_t kPackColumns = block_size(64, 32), kWidePackColumns = 2 * kPackColumns;
// Columns of a packed block without a c, at least. It holds the whole depth, since there is no c to add to.
constexpr std::int64_t kMinWholeColumns = block_size(128, 1);
// Blocks per thread, so that a thread that was interrupted does not keep the others waiting for long.
constexpr std::int64_t kBlocksPerThread = 8;
// Floats between rows of a block's own sums, so that they are no power of two apart.
constexpr std::int64_t kRowPadding = 16;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The size of equal parts of `count`, at most `largest` each and a multiple of `unit`.
std::int64_t even_part(std::int64_t count, std::int64_t largest, std::int64_t unit) {
  const std::int64_t parts = divide_up(count, largest);
  return divide_up(divide_up(count, parts), unit) * unit;
}

// The given ranges, or one of all.
std::vector<GemmRange> ranges_or_all(std::span<const GemmRange> ranges, std::int64_t all) {
  if (ranges.empty()) return {{0, all}};
  return {ranges.begin(), ranges.end()};
}

// Whether this processor gains by long tiles. Cores with 2 MB of second-level cache (Sapphire Rapids) wait longer for
// lines from beyond it than the hardware fetches ahead. Zen 4 and 5 have 1 MB; Zen 5 gains nothing by long tiles
// (bench/results/train_cpu.md).
bool has_slow_panels() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const bool is_slow = sysconf(_SC_LEVEL2_CACHE_SIZE) >= 2L << 20;
  return is_slow;
#endif
  return false;
}

GemmKernels kernels_of(DType dtype, bool bf16_products) {
  return bf16_products ? bf16_gemm_kernels() : float_gemm_kernels(dtype, has_slow_panels());
}

// Columns of a packed block of whole depth, at least, if c has so many. For each, all rows of a transposed a are
// packed.
std::int64_t fewest_columns(bool has_c, bool is_a_transposed, const GemmKernels& kernels) {
  if (!has_c) return kMinWholeColumns;
  if (is_a_transposed) return kernels.max_block_columns;
  return std::min(kUsualColumns, kernels.max_panel_words / (4 * kernels.words_of(kernels.max_depth)));
}

// Bound of the panels that cut_b() takes.
std::int64_t most_panel_words(const GemmShape& shape, const GemmKernels& kernels) {
  const std::int64_t panel = kernels.panel_columns, most = kernels.max_panel_words;
  const std::int64_t columns = divide_up(shape.n, panel) * panel, words = kernels.words_of(shape.k);
  const std::int64_t depth_words = kernels.words_of(kernels.max_depth);
  // A part of the columns is whole panels, so up to one more than fits.
  const bool may_cut_columns = !shape.has_c || columns * depth_words > most;
  const std::int64_t whole_words = may_cut_columns ? words : std::min(words, 4 * depth_words);
  const std::int64_t fewest = fewest_columns(shape.has_c, shape.is_a_transposed, kernels);
  const std::int64_t cut = std::max(most, fewest * whole_words) + panel * whole_words;
  return std::max(std::min(columns * whole_words, cut), std::min(columns * words, most));
}

}  // namespace

std::int64_t largest_depth(const PackedBlock& packed) {
  return std::ranges::max(packed.depths, {}, &DepthBlock::count).count;
}

GemmPlan::GemmPlan(const Gemm& gemm) : GemmPlan(gemm, kernels_of(gemm.dtype, gemm.bf16_products)) {}

GemmPlan::GemmPlan(const Gemm& gemm, const GemmKernels& kernels) : gemm_(gemm), kernels_(kernels) {
  std::int64_t words = 0;
  for (const GemmRange& range : ranges_or_all(gemm.depths, gemm.k)) {
    const std::int64_t largest = even_part(range.count(), kernels_.max_depth, kernels_.unit_depths);
    for (std::int64_t begin = range.begin; begin < range.end; begin += largest) {
      const std::int64_t count = std::min(largest, range.end - begin);
      depths_.push_back({begin, count, kernels_.words_of(count), words});
      words += depths_.back().words;
    }
  }
  cut_b();
  cut_c();
}

std::int64_t GemmPlan::depth_words(std::int64_t begin, std::int64_t end) const {
  const DepthBlock& last = depths_[static_cast<std::size_t>(end - 1)];
  return last.words_before + last.words - depths_[static_cast<std::size_t>(begin)].words_before;
}

void GemmPlan::cut_b() {
  const std::int64_t panel = kernels_.panel_columns, most = kernels_.max_panel_words;
  const std::int64_t columns = divide_up(gemm_.n, panel) * panel, blocks = std::ssize(depths_);
  const std::int64_t words = depth_words(0, blocks);
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < blocks; ++i) largest = std::max(largest, depth_words(i, i + 1));
  // Cut the columns if their whole depth is small enough that many fit, else the depth.
  if (gemm_.c == nullptr || columns * largest > most || words * kernels_.word_depths <= 4 * kernels_.max_depth) {
    const std::int64_t fewest = fewest_columns(gemm_.c != nullptr, gemm_.a.transposed, kernels_);
    packed_depths_ = blocks;
    packed_columns_ = even_part(gemm_.n, std::max(most / words, fewest), panel);
  } else {
    packed_columns_ = columns;
    packed_depths_ = std::clamp(most / columns / largest, std::int64_t{1}, blocks);
  }
  column_parts_ = divide_up(gemm_.n, packed_columns_);
  depth_parts_ = divide_up(blocks, packed_depths_);
  if (gemm_.panels != nullptr) return;
  panels_ = scratch_floats(Scratch::kPanels,
                           divide_up(packed_columns_, panel) * panel * std::min(words, packed_depths_ * largest));
}

void GemmPlan::cut_c() {
  const std::int64_t tile = kernels_.tile_rows, panel = kernels_.panel_columns;
  const std::vector<GemmRange> ranges = ranges_or_all(gemm_.rows, gemm_.m);
  std::int64_t rows = 0;
  for (const GemmRange& range : ranges) rows += range.count();
  const std::int64_t wanted = kBlocksPerThread * thread_count();
  std::int64_t block_rows = even_part(rows, kMaxBlockRows, tile);
  const std::int64_t with_c = gemm_.a.transposed ? kTransposedColumns : kernels_.max_block_columns;
  block_columns_ = even_part(std::min(packed_columns_, gemm_.n), gemm_.c == nullptr ? kUsualColumns : with_c, panel);
  const auto block_count = [&] { return divide_up(rows, block_rows) * divide_up(packed_columns_, block_columns_); };
  const auto split_columns = [&] {
    while (block_count() < wanted && block_columns_ > 8 * panel) {
      block_columns_ = even_part(packed_columns_, block_columns_ / 2, panel);
    }
  };
  // Blocks side by side would each pack the same rows of a transposed a: cut its rows first.
  if (!gemm_.a.transposed) split_columns();
  while (block_count() < wanted && block_rows > 4 * tile) block_rows = even_part(rows, block_rows / 2, tile);
  split_columns();
  for (const GemmRange& range : ranges) {
    const std::int64_t part = even_part(range.count(), block_rows, tile);
    for (std::int64_t begin = range.begin; begin < range.end; begin += part) {
      row_blocks_.push_back({begin, std::min(range.end, begin + part)});
    }
  }
}

void include_gemm(const GemmShape& shape, ScratchSizes& sizes) {
  const GemmKernels kernels = kernels_of(shape.dtype, shape.bf16_products);
  sizes.include(Scratch::kPanels, most_panel_words(shape, kernels));
  const std::int64_t rows = round_up(std::min(shape.m, kMaxBlockRows), kernels.tile_rows);
  const bool is_converted = shape.dtype != DType::kF32 && kernels.word_depths == 1;
  if (shape.is_a_transposed || is_converted) {
    const std::int64_t words = kernels.words_of(std::min(shape.k, kernels.max_depth));
    sizes.include(Scratch::kTileA, (rows + kernels.tile_rows) * words);
  }
  if (!shape.has_c) {
    const std::int64_t columns = round_up(std::min(shape.n, kUsualColumns), kernels.panel_columns);
    sizes.include(Scratch::kTileB, rows * (columns + kRowPadding));
  }
}

GemmSums sums_of(const Gemm& gemm, const GemmBlock& block, std::int64_t panel_columns) {
  if (gemm.c != nullptr) {
    return {gemm.c + block.row_begin * gemm.c_stride + block.column_begin, gemm.c_stride};
  }
  const std::int64_t stride = divide_up(block.columns(), panel_columns) * panel_columns + kRowPadding;
  return {scratch_floats(Scratch::kTileB, block.rows() * stride), stride};
}

PackedBlock GemmPlan::packed_block(std::int64_t index) const {
  const std::int64_t column = index / depth_parts_ * packed_columns_, part = index % depth_parts_;
  const std::int64_t first = part * packed_depths_, count = std::min(packed_depths_, std::ssize(depths_) - first);
  PackedBlock packed{
      .column_begin = column,
      .column_end = std::min(gemm_.n, column + packed_columns_),
      .depths = std::span(depths_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
      .is_last = part + 1 == depth_parts_,
      .panels = panels_};
  if (gemm_.panels == nullptr) return packed;  // each in the same memory
  const std::int64_t columns = round_up(packed.column_end - column, kernels_.panel_columns);
  const std::int64_t before = column * depth_words(0, std::ssize(depths_)) + columns * packed.depths[0].words_before;
  packed.panels = static_cast<float*>(gemm_.panels) + before;
  return packed;
}

void GemmPlan::pack(const PackedBlock& packed) const {
  const std::int64_t columns = packed.column_end - packed.column_begin;
  const auto part = columns < kWidePackColumns * thread_count() ? kPackColumns : kWidePackColumns;
  parallel_for(divide_up(columns, part), 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t begin = packed.column_begin + task * part;
    kernels_.pack_columns(gemm_.b, packed, begin, std::min(packed.column_end, begin + part));
  });
}

std::int64_t GemmPlan::blocks(const PackedBlock& packed) const {
  return std::ssize(row_blocks_) * divide_up(packed.column_end - packed.column_begin, block_columns_);
}

GemmBlock GemmPlan::block(const PackedBlock& packed, std::int64_t index) const {
  const GemmRange& rows = row_blocks_[static_cast<std::size_t>(index % std::ssize(row_blocks_))];
  const std::int64_t column = packed.column_begin + index / std::ssize(row_blocks_) * block_columns_;
  return {rows.begin, rows.end, column, std::min(packed.column_end, column + block_columns_)};
}

std::int64_t packed_words(std::int64_t n, std::int64_t k, DType dtype, bool bf16_products) {
  const GemmKernels kernels = kernels_of(dtype, bf16_products);
  return round_up(n, kernels.panel_columns) * kernels.words_of(k);
}

void pack_all(const Gemm& gemm) {
  const GemmPlan plan(gemm);
  for (std::int64_t index = 0; index < plan.packed_blocks(); ++index) plan.pack(plan.packed_block(index));
}

GemmSums GemmPlan::multiply(const PackedBlock& packed, const GemmBlock& block) const {
  return kernels_.multiply_block(gemm_, packed, block);
}

}  // namespace teratron
