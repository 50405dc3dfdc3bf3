// The softmax of attention on Hopper: scores of a warp's 16 queries and a tile's keys, as products of warpgroups leave
// them (kernels/hopper.h), their bounds and their dropout mask; and the mask of a warp's 16 keys.
#pragma once

#include <limits>

#include "ops/cuda/attention/hopper_tiles.h"

namespace teratron::cuda {

constexpr int kTileKeys = 128;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Tiles of keys that the queries see of a block whose first one is `query`. The last of them sees as many keys as any,
// and the first one the first.
__device__ inline TileRange key_tiles_of(const AttentionSizes& sizes, int b, int query) {
  const int end = query + kBlockRows < sizes.queries ? query + kBlockRows : sizes.queries;
  const int first = sizes.first_keys == nullptr ? 0 : sizes.first_keys[std::int64_t{b} * sizes.all_queries + query];
  return {first / kTileKeys, (sizes.keys_seen(end - 1) + kTileKeys - 1) / kTileKeys};
}

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// The two rows of a lane, l / 4 and l / 4 + 8 of its warp's 16: their running maximum of scores and this lane's part
// of the sum of exponentials.
struct RowState {
  float max[2] = {kHidden, kHidden}, sum[2] = {0, 0};
};

// Bounds of the keys that a lane's rows see: those from seen[] on are hidden, and those before first[].
struct RowBounds {
  int seen[2], first[2];
  int least_seen;  // of the warp's rows, so that a warp does not part
  bool has_documents;

  __device__ RowBounds(const AttentionSizes& sizes, int b, int query)
      : least_seen(sizes.keys_seen(query)), has_documents(sizes.first_keys != nullptr) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = query + part_row(2 * half), last = sizes.queries - 1;
      seen[half] = sizes.keys_seen(row);
      first[half] = sizes.first_keys == nullptr
                        ? 0
                        : sizes.first_keys[std::int64_t{b} * sizes.all_queries + (row < last ? row : last)];
    }
  }
  __device__ bool hides_some(int key) const { return has_documents || key + kTileKeys > least_seen; }
  __device__ void hide(float (&scores)[kTileKeys / 2], int key) const {
#pragma unroll
    for (int i = 0; i < kTileKeys / 2; ++i) {
      const int half = i % 4 / 2, column = key + i / 4 * 8 + part_column(i % 2);
      if (column >= seen[half] || column < first[half]) scores[i] = kHidden;
    }
  }
};

__device__ inline float larger_of(float a, float b) { return a > b ? a : b; }

// Scores become exp2(scale * (score - maximum)). `correction` brings what was summed up to a smaller maximum to the new
// one. Rows that have seen no key yet have no maximum, and zeros for now.
__device__ inline void exponentiate(float (&scores)[kTileKeys / 2], RowState& state, float (&correction)[2],
                                    float scale) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float max = state.max[half];
#pragma unroll
    for (int i = 2 * half; i < kTileKeys / 2; i += 4) max = larger_of(max, larger_of(scores[i], scores[i + 1]));
    max = larger_of(max, __shfl_xor_sync(0xffffffffU, max, 1));
    max = larger_of(max, __shfl_xor_sync(0xffffffffU, max, 2));
    const float shift = max == kHidden ? 0.0F : max * scale;
    correction[half] = fast_exp2(state.max[half] * scale - shift);
    state.max[half] = max;
    float sum = state.sum[half] * correction[half];
#pragma unroll
    for (int i = 2 * half; i < kTileKeys / 2; i += 4) {
      scores[i] = fast_exp2(scores[i] * scale - shift);
      scores[i + 1] = fast_exp2(scores[i + 1] * scale - shift);
      sum += scores[i] + scores[i + 1];
    }
    state.sum[half] = sum;
  }
}

// The dropout mask of a warp's 16 queries and a tile's keys: lane l draws half the keys of query l % 16. All lanes call
// draw() and drop().
class TileMask {
  static constexpr int kEights = kTileKeys / 16;

 public:
  __device__ void draw(const AttentionMask& mask, const HeadMask& head, int query, int key) {
    const int own_query = query + lane_index() % 16, own_key = key + lane_index() / 16 * (kTileKeys / 2);
    draw_eights<kEights>(words_, mask, head, own_query, own_key);
  }

  // Kept ones are multiplied by their factor at the end.
  __device__ void drop(float (&scores)[kTileKeys / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int word = 0; word < kTileKeys / 32; ++word) {
        const int from = part_row(2 * half) + word / 2 * 16;
        const std::uint32_t kept = __shfl_sync(0xffffffffU, words_[word % 2], from) >> part_column(0);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          float* const pair = scores + (4 * word + n) * 4 + 2 * half;
          if ((kept >> (8 * n) & 1) == 0) pair[0] = 0;
          if ((kept >> (8 * n + 1) & 1) == 0) pair[1] = 0;
        }
      }
    }
  }

 private:
  std::uint32_t words_[2];
};

// The dropout mask of a warp's 16 keys and 64 queries: lane l draws those of queries l and l + 32. All lanes call
// draw() and kept().
class KeyMask {
 public:
  __device__ void draw(const AttentionMask& mask, const HeadMask& head, int query, int key) {
    std::uint32_t words[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) draw_eights<2>(words + i, mask, head, query + lane_index() + i * kWarp, key);
    words_ = words[0] | words[1] << 16;
  }

  // Bits of the two queries in a lane's columns 8 n, and of those 32 further: 0 and 8, and 16 and 24, are its two keys.
  struct Kept {
    std::uint32_t of_query[2];
    __device__ bool at(int n, int i) const { return (of_query[i % 2] >> (n / 4 * 16 + i / 2 * 8) & 1) != 0; }
  };
  __device__ Kept kept(int n) const {
    Kept kept;
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      kept.of_query[odd] = __shfl_sync(0xffffffffU, words_, n % 4 * 8 + part_column(odd)) >> part_row(0);
    }
    return kept;
  }

 private:
  std::uint32_t words_;
};

#endif

}  // namespace teratron::cuda
