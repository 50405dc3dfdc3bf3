// Products of 64 x 64 tiles by 256 threads in fp32, for the attention kernels of any type and head size. Thread (ty,
// tx) of 16 x 16 owns rows 4 ty .. 4 ty + 3 and, of scores, columns tx, tx + 16, ..; of sums over keys or queries,
// columns 4 tx .. 4 tx + 3 and those 64 further. Shared memory is read 16 bytes at a time, and its rows are padded by
// 16 bytes, so that lanes meet in no bank but where they read the same.
#pragma once

#include "ops/cuda/attention/attention.h"

namespace teratron::cuda {

constexpr int kTile = 64, kTileThreads = 256, kThreadRows = 4;
constexpr int kChunk = 32;  // of the summed axis, in shared memory at a time
constexpr int kChunkStride = kChunk + 4, kWeightStride = kTile + 4;

struct alignas(16) TileMemory {
  float staging[2 * kTile * kChunkStride];
  float weights[kTile * kWeightStride];  // what sums over the tile's columns are weighted with
  std::uint8_t kept[kTile][kTile / 8];   // [query][key / 8]: the dropout mask's bits
  // Read again for each tile by kernels that are short of registers: the block's head and tile, the sequence's queries.
  HeadTile at;
  int queries;
  // First key that each of the tile's queries sees. Not read where queries see from key 0 on.
  int first_keys[kTile];
};

// Loads the first keys of sequence b's queries from `query` on, to be read after a barrier; beyond the last query, the
// last one's is repeated.
__device__ inline void load_first_keys(const AttentionSizes& sizes, int b, int query, TileMemory& memory) {
  const int row = query + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= kTile) return;
  const int last = row < sizes.queries ? row : sizes.queries - 1;
  memory.first_keys[threadIdx.x] = sizes.first_keys[std::int64_t{b} * sizes.all_queries + last];
}

// Rows of which those from `begin` on are wanted, to at most `end`.
template <class T>
struct RowRange {
  HeadRows<const T> rows;
  int begin, end;
};

using Scores = float[kThreadRows][kTile / 16];
template <int kColumns>
using RowSums = float[kThreadRows][kColumns / 16];

__device__ inline int thread_row(int i) { return static_cast<int>(threadIdx.x) / 16 * kThreadRows + i; }
__device__ inline int score_column(int j) { return static_cast<int>(threadIdx.x) % 16 + 16 * j; }
__device__ inline int sum_column(int j) { return static_cast<int>(threadIdx.x) % 16 * 4 + j / 4 * 64 + j % 4; }

// kRows x kColumns values from column `column` on, zeros beyond `columns` and beyond the range.
template <int kRows, int kColumns, class T>
__device__ void stage(float* to, int stride, const RowRange<T>& from, int column, int columns) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kTileThreads) {
    const int r = i / kColumns, c = i % kColumns, row = from.begin + r;
    const bool given = row < from.end && column + c < columns;
    to[r * stride + c] = given ? widened(from.rows(row)[column + c]) : 0.0F;
  }
}

// scores = a b^T, of head_size products each.
template <class T>
__device__ void multiply_rows(Scores& scores, const RowRange<T>& a, const RowRange<T>& b, int head_size,
                              TileMemory& memory) {
  float *const a_rows = memory.staging, *const b_rows = memory.staging + kTile * kChunkStride;
  for (auto& row : scores) {
    for (float& score : row) score = 0;
  }
  for (int column = 0; column < head_size; column += kChunk) {
    __syncthreads();
    stage<kTile, kChunk>(a_rows, kChunkStride, a, column, head_size);
    stage<kTile, kChunk>(b_rows, kChunkStride, b, column, head_size);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < kChunk; k += 4) {
      Vector<float> left[kThreadRows];
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) left[i] = load_vector(a_rows + thread_row(i) * kChunkStride + k);
#pragma unroll
      for (int j = 0; j < kTile / 16; ++j) {
        const Vector<float> right = load_vector(b_rows + score_column(j) * kChunkStride + k);
#pragma unroll
        for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
          for (int e = 0; e < 4; ++e) scores[i][j] += left[i][e] * right[e];
        }
      }
    }
  }
}

// sums += weights b, of the columns from `column` on; memory.weights may be written just before.
template <int kColumns, class T>
__device__ void add_weighted_rows(RowSums<kColumns>& sums, const RowRange<T>& b, int column, int head_size,
                                  TileMemory& memory) {
  static_assert(kChunk * kColumns <= static_cast<int>(sizeof(TileMemory::staging) / sizeof(float)));
  for (int begin = 0; begin < kTile; begin += kChunk) {
    __syncthreads();
    stage<kChunk, kColumns>(memory.staging, kColumns, RowRange<T>{b.rows, b.begin + begin, b.end}, column, head_size);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < kChunk; k += 4) {
      Vector<float> left[kThreadRows];
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        left[i] = load_vector(memory.weights + thread_row(i) * kWeightStride + begin + k);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int j = 0; j < kColumns / 16; j += 4) {
          const Vector<float> right = load_vector(memory.staging + (k + e) * kColumns + sum_column(j));
#pragma unroll
          for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) sums[i][j + c] += left[i][e] * right[c];
          }
        }
      }
    }
  }
}

// Scores to where add_weighted_rows() reads them, after what was read there before.
__device__ inline void store_weights(const Scores& scores, TileMemory& memory) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) {
      memory.weights[thread_row(i) * kWeightStride + score_column(j)] = scores[i][j];
    }
  }
}

// Draws the mask of queries from `query` on and keys from `key` on; to be read after a barrier.
__device__ inline void draw_mask(const AttentionMask& mask, const HeadMask& head, int query, int key,
                                 TileMemory& memory) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile / 8; i += kTileThreads) {
    const int row = i / (kTile / 8), eight = i % (kTile / 8);
    memory.kept[row][eight] = static_cast<std::uint8_t>(mask.kept_of_8(head, query + row, key + 8 * eight));
  }
}

// The factor of a probability, by its position in the tile.
__device__ inline float dropout_factor(const AttentionMask& mask, const TileMemory& memory, int query, int key) {
  if (!mask.active()) return 1;
  return memory.kept[query][key / 8] >> key % 8 & 1 ? mask.scale() : 0.0F;
}

}  // namespace teratron::cuda
