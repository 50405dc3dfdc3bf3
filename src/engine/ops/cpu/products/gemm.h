// Matrix products for linear layers: c (+)= a b over all threads, with a hook to finish each block of c while it is in
// the cache of the thread that computed it. Sums are single precision, whatever a and b are stored as. So are products,
// but for those of 16 bits where the processor has them (bf16_kernels.h, tile_kernels.h).
//
// The sum over k runs in blocks whose boundaries depend on k and its runs alone, each added to c in order, so results
// do not depend on the number of threads or on how c was cut into blocks.
#pragma once

#include <cstdint>
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
};

// Rows of c, or depths of the sum: [begin, end).
struct GemmRun {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};

// How values of 16 bits are multiplied.
enum class GemmProducts {
  kWidened,        // to fp32
  kVectors,        // bf16 alone: VDPBF16PS, where has_bf16_products()
  kTiles,          // AMX, where has_tile_products() of the type
  kEmulatedTiles,  // AMX as plain C++ computes it, on any processor: for tests
};

struct Gemm {
  std::int64_t m, n, k;  // c[m,n], a[m,k], b[k,n]; none is 0
  DType dtype;           // of a and b: f32, bf16 or f16
  GemmProducts products = GemmProducts::kWidened;
  GemmOperand a, b;
  float* c;  // may be null: then the sums of a block are only there while it is finished
  std::int64_t c_stride;
  bool accumulate = false;  // c += a b
  // What of m and of k is computed, in order; none of them is empty. Without them, all is.
  std::span<const GemmRun> rows = {}, depths = {};
};

struct GemmBlock {
  std::int64_t row_begin, row_end, column_begin, column_end;
  std::int64_t rows() const { return row_end - row_begin; }
  std::int64_t columns() const { return column_end - column_begin; }
};

// Depths whose sums are made in registers and then added to c. Of each column, they take so many words of the panels,
// and so many are taken by the depths before them: none before the first, to which c adds nothing.
struct GemmDepths {
  std::int64_t begin, count, words, words_before;
  bool is_first() const { return words_before == 0; }
};

// Part of b in panels: columns [column_begin, column_end) of some depths.
struct GemmChunk {
  std::int64_t column_begin, column_end;
  std::span<const GemmDepths> depths;
  bool is_last;  // of the chunks of its columns
  void* panels;  // of words

  // From `panels` to those of `one` of its depths. The last panel is padded to panel_columns.
  std::int64_t words_before(const GemmDepths& one, std::int64_t panel_columns) const {
    const std::int64_t panel_count = (column_end - column_begin + panel_columns - 1) / panel_columns;
    return (one.words_before - depths.front().words_before) * panel_count * panel_columns;
  }
};

// The largest count among a chunk's depths.
std::int64_t most_depths(const GemmChunk& chunk);

// A block of c, or what stands in for it: element (i, j) of the block at data[i * stride + j].
struct GemmSums {
  float* data;
  std::int64_t stride;
};
// That of a block: in c, or in memory of this thread's for as long as the block is at work, whose rows are not a power
// of two apart.
GemmSums sums_of(const Gemm& gemm, const GemmBlock& block, std::int64_t panel_columns);

// The parts that depend on what a and b are stored as.
struct GemmKernels {
  std::int64_t tile_rows, panel_columns;
  std::int64_t word_depths;      // values of a column in 32 bits of a panel
  std::int64_t depth_step;       // blocks of depth and their panels are multiples of it; panels are padded
  std::int64_t max_depth;        // of a block
  std::int64_t max_panel_words;  // of a chunk: panels that all threads share stay in the last-level cache
  void (*pack_columns)(const GemmOperand& b, const GemmChunk& chunk, std::int64_t begin, std::int64_t end);
  GemmSums (*multiply_block)(const Gemm& gemm, const GemmChunk& chunk, const GemmBlock& block);
  std::int64_t tail_words = 0;  // of each row of a, for its last depths or behind them
};

// By the processor's products of bf16 (gemm_bf16.cc).
GemmKernels bf16_gemm_kernels();
// By tiles, of bf16 or f16 (tile_kernels.cc): kTiles or kEmulatedTiles.
GemmKernels tile_gemm_kernels(DType dtype, GemmProducts products);

// How a product is cut up. All cuts are multiples of what the kernel works in, except at the ends.
class GemmPlan {
 public:
  explicit GemmPlan(const Gemm& gemm);

  std::int64_t chunks() const { return column_chunks_ * depth_chunks_; }
  GemmChunk chunk(std::int64_t index) const;  // all depths of a range of columns, then the next range

  std::int64_t pack_tasks(const GemmChunk& chunk) const;
  void pack(const GemmChunk& chunk, std::int64_t task) const;

  std::int64_t blocks(const GemmChunk& chunk) const;
  GemmBlock block(const GemmChunk& chunk, std::int64_t index) const;
  GemmSums multiply(const GemmChunk& chunk, const GemmBlock& block) const;

 private:
  std::int64_t depth_words(std::int64_t begin, std::int64_t end) const;  // of a column, of some of depths_
  void cut_chunks();
  void cut_blocks();

  const Gemm& gemm_;
  GemmKernels kernels_;
  std::vector<GemmDepths> depths_;
  std::vector<GemmRun> row_blocks_;
  std::int64_t chunk_columns_, chunk_depths_, column_chunks_, depth_chunks_;  // chunk_depths_: so many of depths_
  std::int64_t block_columns_;
  void* panels_;
};

// What a product may take of working memory.
struct GemmShape {
  std::int64_t m, n, k;  // the most of each
  DType dtype;
  GemmProducts products;
  bool is_a_transposed, has_c;
};
// The most that a thread which calls gemm() takes; of its helpers, the same without Scratch::kPanels. It never falls
// with m, n or k, and is the same for any runs of m and k, but for products of 16 bits: each run of depths is padded to
// a pair or a tile, so many short ones may take more.
void include_gemm(const GemmShape& shape, ScratchSizes& sizes);

// finish(block, sums) is called once for each block of c, when it is complete, by the thread that completed it.
template <class Finish>
void gemm(const Gemm& gemm, const Finish& finish) {
  const GemmPlan plan(gemm);
  for (std::int64_t index = 0; index < plan.chunks(); ++index) {
    const GemmChunk chunk = plan.chunk(index);
    parallel_for(plan.pack_tasks(chunk), 1, [&](std::int64_t task, std::int64_t) { plan.pack(chunk, task); });
    parallel_for(plan.blocks(chunk), 1, [&](std::int64_t task, std::int64_t) {
      const GemmBlock block = plan.block(chunk, task);
      const GemmSums sums = plan.multiply(chunk, block);
      if (chunk.is_last) finish(block, sums);
    });
  }
}

}  // namespace teratron
