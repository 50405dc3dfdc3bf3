// Tiles of attention on Hopper, of all its kernels: a block owns 128 rows of a head. A warp copies tiles of rows to
// shared memory by tensor maps, whose mbarriers say when they are full and when they are free, and two warpgroups of 64
// rows each multiply them.
#pragma once

#include "ops/cuda/attention/attention_matrices.h"
#include "ops/cuda/kernels/hopper.h"
#include "ops/cuda/runtime/device.h"
#include "ops/cuda/runtime/tensor_map.h"

namespace teratron::cuda {

constexpr int kHopperThreads = 3 * kWarpgroup;  // those that copy, and two warpgroups that multiply
constexpr int kGroupRows = 64, kBlockRows = 2 * kGroupRows;
constexpr std::uint32_t kSharedAlignment = 1024;  // of swizzled rows: eight of 128 bytes

// Columns of a panel: its rows are as wide as a swizzle's span, and heads are whole panels.
template <int kHeadSize>
constexpr int kPanel = kHeadSize % 64 == 0 ? 64 : 32;

// A block for each 128 rows of each head, with shared memory for so many bytes, wherever it begins.
inline LaunchShape hopper_shape(int batch, int heads, int rows, std::size_t bytes) {
  const int tiles = (rows + kBlockRows - 1) / kBlockRows;
  return {.grid = dim3(static_cast<unsigned>(batch * heads * tiles)),
          .block = dim3(kHopperThreads),
          .shared_bytes = bytes + kSharedAlignment};
}

// Maps for the backward pass, of boxes of so many rows.
struct BackwardMaps {
  CUtensorMap q, dout, k, v;
};
struct BoxRows {
  int queries, keys;
};
inline BackwardMaps backward_maps_of(const AttentionBackward& args, int columns, const BoxRows& rows) {
  return {.q = tensor_map_of(args.forward.q, rows.queries, columns),
          .dout = tensor_map_of(args.dout, rows.queries, columns),
          .k = tensor_map_of(args.forward.k, rows.keys, columns),
          .v = tensor_map_of(args.forward.v, rows.keys, columns)};
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kConsumers = 2 * kWarpgroup, kConsumerWarps = kConsumers / kWarp;
// 65536 registers on 384 threads, at most 168 each when the kernel starts.
constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
// Numbers of barriers: a warpgroup's turn to start products is 1 or 2.
constexpr int kTurns = 1, kPaddingCleared = 3;

// Tiles [first, end) that a block looks at.
struct TileRange {
  int first, end;
  __device__ int count() const { return end - first; }
};

template <class Memory>
__device__ Memory& hopper_memory() {
  unsigned char* const memory = dynamic_shared<unsigned char>();
  const std::uint32_t past = shared_address(memory) % kSharedAlignment;
  return *reinterpret_cast<Memory*>(memory + (past == 0 ? 0 : kSharedAlignment - past));
}

// Number of the thread's warpgroup, by way of an exchange, so that the compiler knows that a warp does not part here.
__device__ inline int warpgroup_index() {
  return __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
}

// First of the warp's 16 rows, where the block's begin at `first`: its first warpgroup has none.
__device__ inline int first_row_of_warp(int first) { return first + (warp_index() - kWarpgroup / kWarp) * 16; }

// The rows of a head from `row` on, to one panel after another.
template <int kRows, int kHeadSize, class T>
__device__ void start_panels(T* to, const CUtensorMap& map, const Mbarrier& counts, int b, int head, int row) {
  constexpr int kColumns = kPanel<kHeadSize>;
#pragma unroll
  for (int column = 0; column < kHeadSize; column += kColumns) {
    start_tensor_copy(to + column * kRows, map, counts, column, head, row, b);
  }
}

// The block's own rows, half of them for each warpgroup.
template <int kHeadSize, class T>
__device__ void start_block_rows(T (&to)[2][kGroupRows * kHeadSize], const CUtensorMap& map, const Mbarrier& counts,
                                 int b, int head, int row) {
#pragma unroll
  for (int group = 0; group < 2; ++group) {
    start_panels<kGroupRows, kHeadSize>(to[group], map, counts, b, head, row + group * kGroupRows);
  }
}

// Arrives for a warp that has read what is free now.
__device__ inline void release(Mbarrier& free) {
  __syncwarp();
  if (lane_index() == 0) free.arrive();
}

// Bytes from the first column to another, in panels of so many rows.
template <int kHeadSize, class T>
__device__ std::uint32_t bytes_to(int column, int rows) {
  constexpr int kColumns = kPanel<kHeadSize>;
  return static_cast<std::uint32_t>((column / kColumns * kColumns * rows + column % kColumns) * sizeof(T));
}

// Starts scores = left right^T of rows of heads, as a group of products.
template <int kHeadSize, class T, int kScores>
__device__ void start_scores(float (&scores)[kScores], const T* left, const T* right) {
  constexpr int kColumns = kPanel<kHeadSize>, kRightRows = 2 * kScores;
  const std::uint64_t a = matrix_descriptor<kColumns>(left, 16), b = matrix_descriptor<kColumns>(right, 16);
  const auto left_at = [&](int column) { return moved_by(a, bytes_to<kHeadSize, T>(column, kGroupRows)); };
  const auto right_at = [&](int column) { return moved_by(b, bytes_to<kHeadSize, T>(column, kRightRows)); };
  fence_products();
  multiply_rows<T, false>(scores, left_at(0), right_at(0));
#pragma unroll
  for (int column = 16; column < kHeadSize; column += 16) {
    multiply_rows<T, true>(scores, left_at(column), right_at(column));
  }
  commit_products();
}

// Scores as a left operand: parts of 16 columns.
template <class T, int kScores>
__device__ void round_weights(std::uint32_t (&weights)[kScores / 2], const float (&scores)[kScores]) {
#pragma unroll
  for (int i = 0; i < kScores / 2; ++i) weights[i] = rounded_pair<T>(scores[2 * i], scores[2 * i + 1]);
}

// Starts sums += weights rows, as a group of products.
template <class T, int kSums, int kWeights>
__device__ void start_weighted_sums(float (&sums)[kSums], std::uint32_t (&weights)[kWeights], const T* rows) {
  constexpr int kHeadSize = 2 * kSums, kRows = 4 * kWeights, kColumns = kPanel<kHeadSize>;
  constexpr std::uint32_t kPanelBytes = kRows * kColumns * sizeof(T), kStep = 16 * kColumns * sizeof(T);
  const std::uint64_t b = matrix_descriptor<kColumns>(rows, kPanelBytes);
  hold(sums);
  hold(weights);
  fence_products();
#pragma unroll
  for (int i = 0; i < kRows / 16; ++i) add_weighted_rows<T>(sums, weights + 4 * i, moved_by(b, i * kStep));
  commit_products();
}

// Zeros for a tile's rows from `text` on, by all threads that multiply: padding may be anything, also what no zero
// makes zero. Then make_padding_known().
template <int kRows, int kHeadSize, class T>
__device__ void clear_padding(T* tile, int text) {
  constexpr int kRowVectors = kPanel<kHeadSize> / 8;
  auto* const vectors = reinterpret_cast<Vector<T>*>(tile);
  for (int i = static_cast<int>(threadIdx.x) - kWarpgroup; i < kRows * kHeadSize / 8; i += kConsumers) {
    if (i / kRowVectors % kRows >= text) vectors[i] = {};
  }
}
__device__ inline void make_padding_known() {
  show_to_copies();
  wait_at_barrier<kConsumers>(kPaddingCleared);
}

#endif

}  // namespace teratron::cuda
