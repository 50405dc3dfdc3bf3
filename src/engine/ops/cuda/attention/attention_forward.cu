// Attention forward on tensor cores. A block owns 128 queries, a warp 32: each operand that a warp loads of k or v is
// then used twice. Tiles of keys and values arrive in one of two buffers while the other is multiplied.
#include <limits>

#include "ops/cuda/attention/attention_matrices.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {
namespace {

constexpr int kRows16 = 2;  // of a warp
constexpr int kWarpQueries = 16 * kRows16, kQueries = kWarpQueries * kMatrixWarps;

// Longer heads take shorter tiles of keys: scores and sums together must fit in registers.
template <int kHeadSize>
constexpr int kKeys = kHeadSize <= 64 ? 64 : 32;

template <class T, int kHeadSize>
struct ForwardMemory {
  T q[kQueries * kRowStride<kHeadSize>];
  T k[2][kKeys<kHeadSize> * kRowStride<kHeadSize>];
  T v[2][kKeys<kHeadSize> * kRowStride<kHeadSize>];
  // Read again for each tile, since registers are short: the block's head and tile, its mask, the sequence's queries.
  HeadTile at;
  HeadMask mask;
  int queries;
};

// State of a lane's rows, which are part_row(0) and part_row(2) of each 16: their running maximum of scores, this
// lane's part of the sum of exponentials, and sums over keys.
template <int kHeadSize>
struct RunningSoftmax {
  float max[kRows16][2], sum[kRows16][2];
  WarpSums<kRows16, kHeadSize / 8> out;

  __device__ void clear() {
    out.clear();
#pragma unroll
    for (int i = 0; i < 2 * kRows16; ++i) {
      max[i / 2][i % 2] = -std::numeric_limits<float>::infinity();
      sum[i / 2][i % 2] = 0;
    }
  }
};

template <int kColumns8>
__device__ void hide_unseen(WarpSums<kRows16, kColumns8>& scores, const AttentionSizes& sizes, int query, int key) {
#pragma unroll
  for (int m = 0; m < kRows16; ++m) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int seen = sizes.keys_seen(query + 16 * m + part_row(e)) - key - part_column(e);
#pragma unroll
      for (int n = 0; n < kColumns8; ++n) {
        if (8 * n >= seen) scores.parts[m][n][e] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

__device__ inline float larger(float a, float b) { return a > b ? a : b; }

// Scores become exp2(scale * (score - maximum)); what was summed up to a smaller maximum is brought to the new one.
// Every row sees a key of the first tile, so the maximum is finite.
template <int kHeadSize, int kColumns8>
__device__ void exponentiate(WarpSums<kRows16, kColumns8>& scores, RunningSoftmax<kHeadSize>& state, float scale) {
#pragma unroll
  for (int m = 0; m < kRows16; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float max = state.max[m][half];
#pragma unroll
      for (int n = 0; n < kColumns8; ++n) {
        max = larger(max, larger(scores.parts[m][n][2 * half], scores.parts[m][n][2 * half + 1]));
      }
      max = larger(max, __shfl_xor_sync(0xffffffffU, max, 1));
      max = larger(max, __shfl_xor_sync(0xffffffffU, max, 2));
      const float correction = fast_exp2((state.max[m][half] - max) * scale), shift = max * scale;
      state.max[m][half] = max;
      float sum = state.sum[m][half] * correction;
#pragma unroll
      for (int n = 0; n < kColumns8; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores.parts[m][n][e] = fast_exp2(scores.parts[m][n][e] * scale - shift);
          sum += scores.parts[m][n][e];
        }
      }
      state.sum[m][half] = sum;
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        state.out.parts[m][n][2 * half] *= correction;
        state.out.parts[m][n][2 * half + 1] *= correction;
      }
    }
  }
}

// Kept ones are multiplied by their factor at the end.
template <int kColumns8>
__device__ void drop(WarpSums<kRows16, kColumns8>& scores, const WarpMask<kWarpQueries, 8 * kColumns8>& mask) {
#pragma unroll
  for (int m = 0; m < kRows16; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int word = 0; word < kColumns8 / 4; ++word) {
        const std::uint32_t kept = mask.keys_of(16 * m + part_row(2 * half), word) >> part_column(0);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          MatrixC& part = scores.parts[m][4 * word + n];
          if ((kept >> (8 * n) & 1) == 0) part[2 * half] = 0;
          if ((kept >> (8 * n + 1) & 1) == 0) part[2 * half + 1] = 0;
        }
      }
    }
  }
}

// One tile of keys for a warp's queries from `query` on.
template <class T, int kHeadSize, class Left>
__device__ void attend_tile(RunningSoftmax<kHeadSize>& state, const Left& q, const T* k, const T* v,
                            const AttentionSizes& sizes, int query, int key, const AttentionMask& mask,
                            const HeadMask& head_mask) {
  constexpr int kTileKeys = kKeys<kHeadSize>;
  WarpMask<kWarpQueries, kTileKeys> warp_mask;
  if (mask.active()) warp_mask.draw(mask, head_mask, query, key);
  WarpSums<kRows16, kTileKeys / 8> scores;
  scores.clear();
  multiply_by_rows<T, kHeadSize>(scores, q, k);
  if (key + kTileKeys > sizes.keys_seen(query)) hide_unseen(scores, sizes, query, key);
  exponentiate(scores, state, sizes.scale_2());
  if (mask.active()) drop(scores, warp_mask);
  add_weighted<T, kHeadSize>(state.out, scores, v);
}

template <class T, int kHeadSize>
__device__ void store(const RunningSoftmax<kHeadSize>& state, const ForwardViews<T>& views, const AttentionSizes& sizes,
                      const HeadTile& at, int query, float dropout_scale) {
#pragma unroll
  for (int m = 0; m < kRows16; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = state.sum[m][half];
      sum += __shfl_xor_sync(0xffffffffU, sum, 1);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      const int row = query + 16 * m + part_row(2 * half);
      if (row >= sizes.queries) continue;
      if (lane_index() % 4 == 0) {
        views.log_sum_exp[sizes.first_row(at.b, at.h) + row] = state.max[m][half] * sizes.scale + logf(sum);
      }
      const float factor = dropout_scale / sum;
      T* const to = views.out.head(at.b, at.h)(row) + part_column(0);
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        const MatrixC& part = state.out.parts[m][n];
        if (8 * n < sizes.head_size) store_pair(to + 8 * n, part[2 * half] * factor, part[2 * half + 1] * factor);
      }
    }
  }
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kMatrixThreads)
    attend(ForwardViews<T> views, AttentionSizes call, AttentionMask mask) {
  constexpr int kTileKeys = kKeys<kHeadSize>;
  auto& memory = *dynamic_shared<ForwardMemory<T, kHeadSize>>();
  const HeadTile at(call.heads, (call.queries + kQueries - 1) / kQueries, true);
  AttentionSizes sizes = call.without_padding(at.b);
  const int block_query = at.tile * kQueries, warp_row = warp_index() * kWarpQueries, query = block_query + warp_row;
  clear_padded_queries(views, sizes, at, block_query, kQueries);
  if (block_query >= sizes.queries) return;
  if (threadIdx.x == 0) {
    memory.at = at;
    memory.mask = mask.of_head(at.b, at.h);
    memory.queries = sizes.queries;
  }
  // The block's last query sees as many keys as any.
  sizes.keys = sizes.keys_seen((block_query + kQueries < sizes.queries ? block_query + kQueries : sizes.queries) - 1);
  const int warp_end = sizes.keys_seen(query + kWarpQueries - 1);
  const auto start_tile = [&](const HeadTile& head, int key) {
    const int buffer = key / kTileKeys % 2;
    start_rows<kTileKeys, kHeadSize>(memory.k[buffer], views.k.head(head.b, head.h), key, sizes.keys, sizes.head_size);
    start_rows<kTileKeys, kHeadSize>(memory.v[buffer], views.v.head(head.b, head.h), key, sizes.keys, sizes.head_size);
    commit_copies();
  };
  start_rows<kQueries, kHeadSize>(memory.q, views.q.head(at.b, at.h), block_query, sizes.queries, sizes.head_size);
  start_tile(at, 0);

  RunningSoftmax<kHeadSize> state;
  state.clear();
  LeftOperand<T, kHeadSize, kRows16, false> q;
#pragma unroll 1
  for (int key = 0; key < sizes.keys; key += kTileKeys) {
    wait_for_copies<0>();
    __syncthreads();  // the tile is there for all, and all are done with the other buffer
    if (key == 0) q.load(memory.q, warp_row);
    if (key + kTileKeys < sizes.keys) start_tile(memory.at, key + kTileKeys);
    if (key >= warp_end) continue;
    const int buffer = key / kTileKeys % 2;
    attend_tile<T, kHeadSize>(state, q, memory.k[buffer], memory.v[buffer], sizes, query, key, mask, memory.mask);
  }
  sizes.queries = memory.queries;
  store(state, views, sizes, memory.at, query, mask.scale());
}

}  // namespace

void attend_matrices(cudaStream_t stream, const AttentionForward& args) {
  const AttentionSizes sizes = sizes_of(args);
  with_half_type(args.q.dtype, [&]<class T>(ElementType<T>) {
    with_head_size(sizes.head_size, [&](auto size) {
      constexpr int kHeadSize = decltype(size)::value;
      const int tiles = (sizes.queries + kQueries - 1) / kQueries;
      launch(stream,
             {.grid = dim3(static_cast<unsigned>(sizes.batch * sizes.heads * tiles)),
              .block = dim3(kMatrixThreads),
              .shared_bytes = sizeof(ForwardMemory<T, kHeadSize>)},
             attend<T, kHeadSize>, views_of<T>(args), sizes, mask_of(args));
    });
  });
}

}  // namespace teratron::cuda
