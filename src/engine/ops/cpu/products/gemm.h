// Matrix products for linear layers: c (+)= a b over all threads, with a hook to finish each block of c while it is in
// the cache of the thread that computed it. Sums are fp32, whatever a and b are stored as. Factors are widened to fp32,
// except bf16 on processors that multiply it (bf16_kernels.h).
//
//   range        [begin, end) of rows or of depths
//   block        rectangle of c that one thread computes (GemmBlock); depths that are summed in registers (DepthBlock)
//   packed block part of b in panels, which all threads share (PackedBlock)
//   panel        columns of b as the kernel reads them, one depth after the other, in words of 32 bits
//   tile         rows by columns of c that fit the registers
//
// Blocks of depth are cut by k and its ranges alone and added to c in order, so results do not depend on the number of
// threads or on how c was cut into blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/host/threads.h"
#include "ops/cpu/scratch.h"

namespace teratron {

// Element (i, j) is at data[i * stride + j] or, transposed, at data[j * stride + i].
struct GemmOperand {
  const void* data;
  std::int64_t stride;
  bool transposed = false;
  // Only b may be a weight in tiles (tensor/weight_tiles.h), with the columns of a row as its stride. Its values are
  // rounded to the product's type and packed as any other: the bits are those of a weight that was widened before.
  std::optional<DType> tiles = std::nullopt;
};

// Rows of c, or depths of the sum: [begin, end).
struct GemmRange {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};

struct Gemm {
  std::int64_t m, n, k;        // c[m,n], a[m,k], b[k,n]; none is 0
  DType dtype;                 // of a and b: f32, bf16 or f16
  bool bf16_products = false;  // bf16 alone, where has_bf16_products()
  GemmOperand a, b;
  float* c;  // null: a block's sums lie in scratch memory until it is finished
  std::int64_t c_stride;
  bool accumulate = false;  // c += a b
  // Ranges of m and of k that are computed, in order and not empty. Without them, all is.
  std::span<const GemmRange> rows = {}, depths = {};
  // packed_words() of memory, aligned to 64 bytes, in which pack_all() has packed all of b, for a product with the same
  // n, k and dtype and without ranges of k. Null: the product packs b itself, a part at a time.
  void* panels = nullptr;
};

struct GemmBlock {
  std::int64_t row_begin, row_end, column_begin, column_end;
  std::int64_t rows() const { return row_end - row_begin; }
  std::int64_t columns() const { return column_end - column_begin; }
};

// Depths that are summed in registers before c is added: `words` of a panel's column, after the `words_before` of the
// blocks of depth before it.
struct DepthBlock {
  std::int64_t begin, count, words, words_before;
  bool is_first() const { return words_before == 0; }
};

// Part of b in panels: columns [column_begin, column_end) of some blocks of depth.
struct PackedBlock {
  std::int64_t column_begin, column_end;
  std::span<const DepthBlock> depths;
  bool is_last;  // of its columns: c is complete after it
  void* panels;  // of words

  // Words from `panels` to the panels of `one` of its blocks of depth. The last panel is padded to panel_columns.
  std::int64_t words_before(const DepthBlock& one, std::int64_t panel_columns) const {
    const std::int64_t panel_count = (column_end - column_begin + panel_columns - 1) / panel_columns;
    return (one.words_before - depths.front().words_before) * panel_count * panel_columns;
  }
};

// The largest `count` of the packed block's blocks of depth.
std::int64_t largest_depth(const PackedBlock& packed);

// Sums of a block of c: element (i, j) at data[i * stride + j].
struct GemmSums {
  float* data;
  std::int64_t stride;
};
// Memory for a block's sums: in c or, where that is null, in this thread's scratch memory, whose rows are not a power
// of two apart.
GemmSums sums_of(const Gemm& gemm, const GemmBlock& block, std::int64_t panel_columns);

// The functions and sizes that depend on how a and b are stored and multiplied.
struct GemmKernels {
  std::int64_t tile_rows, panel_columns;
  std::int64_t word_depths;      // values of a column in a word
  std::int64_t unit_depths;      // values multiplied at a time; every block of depth but the last is whole units
  std::int64_t max_depth;        // of a block of depth
  std::int64_t max_panel_words;  // of a packed block, which stays in the last-level cache
  std::int64_t max_block_columns;
  void (*pack_columns)(const GemmOperand& b, const PackedBlock& packed, std::int64_t begin, std::int64_t end);
  GemmSums (*multiply_block)(const Gemm& gemm, const PackedBlock& packed, const GemmBlock& block);

  // Words of a column of this depth, padded to whole units.
  std::int64_t words_of(std::int64_t depth) const {
    return (depth + unit_depths - 1) / unit_depths * (unit_depths / word_depths);
  }
};

GemmKernels bf16_gemm_kernels();  // gemm_bf16.cc
// Kernels of fp32 sums. Long tiles suit processors whose panels come late; the bits are the same.
GemmKernels float_gemm_kernels(DType dtype, bool long_tiles);

// Cuts of a product, at multiples of tiles, panels and words.
class GemmPlan {
 public:
  explicit GemmPlan(const Gemm& gemm);  // with the kernels that suit this processor
  GemmPlan(const Gemm& gemm, const GemmKernels& kernels);

  std::int64_t packed_blocks() const { return column_parts_ * depth_parts_; }
  PackedBlock packed_block(std::int64_t index) const;  // all depths of some columns, then the next columns

  void pack(const PackedBlock& packed) const;  // by all threads

  std::int64_t blocks(const PackedBlock& packed) const;
  GemmBlock block(const PackedBlock& packed, std::int64_t index) const;
  GemmSums multiply(const PackedBlock& packed, const GemmBlock& block) const;

 private:
  std::int64_t depth_words(std::int64_t begin, std::int64_t end) const;  // of a column of depths_[begin, end)
  void cut_b();
  void cut_c();

  const Gemm& gemm_;
  GemmKernels kernels_;
  std::vector<DepthBlock> depths_;
  std::vector<GemmRange> row_blocks_;
  std::int64_t packed_columns_, packed_depths_;  // of a packed block; packed_depths_ counts blocks of depth
  std::int64_t column_parts_, depth_parts_;      // packed blocks along n and along k
  std::int64_t block_columns_;
  void* panels_ = nullptr;  // of one packed block at a time
};

// Upper bounds of a product, from which its working memory is planned.
struct GemmShape {
  std::int64_t m, n, k;
  DType dtype;
  bool bf16_products, is_a_transposed, has_c;
};
// Includes the scratch memory of a thread that calls gemm(); its helpers take no Scratch::kPanels. It never falls with
// m, n or k. Ranges of k do not change it, except in bf16 products, where each range is padded to a unit, so that many
// short ones take more.
void include_gemm(const GemmShape& shape, ScratchSizes& sizes);

// Packs b into gemm.panels, which products read from then on. gemm.c is not written, but must be null exactly if theirs
// is, since b is cut in another way then.
void pack_all(const Gemm& gemm);
std::int64_t packed_words(std::int64_t n, std::int64_t k, DType dtype, bool bf16_products);

// finish(block, sums) is called once for each block of c, when it is complete, by the thread that completed it.
template <class Finish>
void gemm(const Gemm& gemm, const Finish& finish) {
  const GemmPlan plan(gemm);
  for (std::int64_t index = 0; index < plan.packed_blocks(); ++index) {
    const PackedBlock packed = plan.packed_block(index);
    if (gemm.panels == nullptr) plan.pack(packed);
    parallel_for(plan.blocks(packed), 1, [&](std::int64_t task, std::int64_t) {
      const GemmBlock block = plan.block(packed, task);
      const GemmSums sums = plan.multiply(packed, block);
      if (packed.is_last) finish(block, sums);
    });
  }
}

}  // namespace teratron
