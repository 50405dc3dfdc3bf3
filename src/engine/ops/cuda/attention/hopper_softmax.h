// The softmax of attention on Hopper: scores of a warp's 16 queries and a tile's keys, as products of warpgroups leave
// them (kernels/hopper.h), their bounds and their dropout mask.
#pragma once

#include <limits>

#include "ops/cuda/attention/hopper_masks.h"

namespace teratron::cuda {

constexpr int kTileKeys = 128, kRowMaskBits = kBlockRows * kTileKeys;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

using RowMasks = MaskMemory<kRowMaskBits>;

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

// Draws the masks of a block's queries and the tiles of keys that they see, by the warps that draw. Words of a tile are
// [query][lane % 4].
__device__ inline void draw_masks(RowMasks& memory, const AttentionMask& mask, const HeadTile& at,
                                  const TileRange& tiles, int warp) {
  const MaskDrawer drawer(mask, at.b, at.h);
  const int query = at.tile * kBlockRows;
#pragma unroll 1
  for (int n = 0; n < tiles.count(); ++n) {
    const int key = (tiles.first + n) * kTileKeys;
    draw_tile(memory, n, warp, [&](int unit, std::uint8_t* bytes) {
      const int row = unit / 2, half = unit % 2;
      std::uint32_t drawn[8];
      drawer.draw<8, 0>(drawn, query + row, key + half * (kTileKeys / 2));
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        bytes[16 * row + r / 2 * 4 + half * 2 + r % 2] = static_cast<std::uint8_t>(drawn[r]);
      }
    });
  }
}

// Which scores of a lane's two rows are kept.
class RowsKept {
 public:
  // By all warps that multiply, once for each tile, in turn.
  __device__ void read(RowMasks& memory, int n) {
    read_mask<2, 8 * kLanesOfRow>(of_row_, memory, n, first_row_of_warp(0) * kLanesOfRow + lane_index());
  }

  // Kept ones are multiplied by their factor at the end.
  __device__ void drop(float (&scores)[kTileKeys / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          if (!of_row_[half].at(byte, n)) scores[4 * (byte / 2 * 8 + n) + 2 * half + byte % 2] = 0;
        }
      }
    }
  }

 private:
  static constexpr int kLanesOfRow = 4;

  Kept of_row_[2];
};

#endif

}  // namespace teratron::cuda
