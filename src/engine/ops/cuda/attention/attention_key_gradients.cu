// Gradients of keys and values on tensor cores. A block owns 64 keys of a key head, a warp 16, and walks the queries
// that see them, one of the query heads that share the keys after another. Scores are computed as k q^T, so that a warp
// has what it needs of p^T and ds^T in registers:
//   dv += (m p)^T dout,   dk += scale ds^T q,   ds = p (m dout v^T - D).
#include "ops/cuda/attention/attention_matrices.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {
namespace {

constexpr int kWarpKeys = 16, kKeys = kWarpKeys * kMatrixWarps;

// Queries whose scores are in registers at a time, next to the sums.
template <int kHeadSize>
constexpr int kStep = kHeadSize <= 96 ? 32 : 16;

// In shared memory at a time.
template <int kHeadSize>
constexpr int kQueries = kHeadSize <= 64 ? 64 : 32;

template <class T, int kHeadSize>
struct KeyMemory {
  T k[kKeys * kRowStride<kHeadSize>], v[kKeys * kRowStride<kHeadSize>];
  T q[2][kQueries<kHeadSize> * kRowStride<kHeadSize>];
  T dout[2][kQueries<kHeadSize> * kRowStride<kHeadSize>];
  QueryStatistics statistics[2][kQueries<kHeadSize>];
  // Read again for each tile, since registers are short: the block's tile, of the query head that it is at, and the
  // head's mask.
  HeadTile at;
  HeadMask mask;
};

template <int kColumns8>
using KeyScores = WarpSums<1, kColumns8>;

// kStep queries of a tile in shared memory.
template <class T>
struct QueryStep {
  const T *q, *dout;
  const QueryStatistics* statistics;
  int query;  // the first one's number
};

// Scores become the probabilities that are kept (their factor comes at the end) and `gradients`, of those, become ds.
template <int kColumns8>
__device__ void differentiate(KeyScores<kColumns8>& scores, KeyScores<kColumns8>& gradients,
                              const QueryStatistics* statistics, const AttentionSizes& sizes, int query, int key,
                              const AttentionMask& mask, const WarpMask<8 * kColumns8, kWarpKeys>& warp_mask) {
  const float scale = sizes.scale_2(), dropout_scale = mask.scale();
  const bool all_seen = key + kWarpKeys <= sizes.keys_seen(query);
#pragma unroll
  for (int n = 0; n < kColumns8; ++n) {
    std::uint32_t keys_kept[2] = {~0U, ~0U};  // of a lane's two queries, from its first key on
    if (mask.active()) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        keys_kept[odd] = warp_mask.keys_of(8 * n + part_column(odd)) >> part_row(0);
      }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = 8 * n + part_column(e), row = part_row(e);
      const QueryStatistics of_query = statistics[column];
      float p = fast_exp2(scores.parts[0][n][e] * scale - of_query.log2_sum);
      if (!all_seen && key + row >= sizes.keys_seen(query + column)) p = 0;
      float gradient = gradients.parts[0][n][e] * dropout_scale, kept = p;
      if (mask.active() && (keys_kept[e % 2] >> (e / 2 * 8) & 1) == 0) gradient = kept = 0;
      scores.parts[0][n][e] = kept;
      gradients.parts[0][n][e] = p * (gradient - of_query.product);
    }
  }
}

template <class T, int kHeadSize>
struct KeySums {
  WarpSums<1, kHeadSize / 8> dk, dv;
};

template <class T, int kHeadSize, class Left>
__device__ void add_step(KeySums<T, kHeadSize>& sums, const Left& k, const Left& v, const QueryStep<T>& step,
                         const AttentionSizes& sizes, int key, const AttentionMask& mask, const HeadMask& head_mask) {
  WarpMask<kStep<kHeadSize>, kWarpKeys> warp_mask;
  if (mask.active()) warp_mask.draw(mask, head_mask, step.query, key);
  KeyScores<kStep<kHeadSize> / 8> scores, gradients;
  scores.clear();
  gradients.clear();
  multiply_by_rows<T, kHeadSize>(scores, k, step.q);
  multiply_by_rows<T, kHeadSize>(gradients, v, step.dout);
  differentiate(scores, gradients, step.statistics, sizes, step.query, key, mask, warp_mask);
  add_weighted<T, kHeadSize>(sums.dv, scores, step.dout);
  add_weighted<T, kHeadSize>(sums.dk, gradients, step.q);
}

template <class T, int kHeadSize>
__device__ void store(const KeySums<T, kHeadSize>& sums, const BackwardViews<T>& views, const AttentionSizes& sizes,
                      const HeadTile& at, int key, float dropout_scale) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = key + part_row(2 * half);
    if (row >= sizes.keys) continue;
#pragma unroll
    for (int n = 0; n < kHeadSize / 8; ++n) {
      if (8 * n >= sizes.head_size) continue;
      const int column = 8 * n + part_column(0);
      const MatrixC &dk = sums.dk.parts[0][n], &dv = sums.dv.parts[0][n];
      store_gradient_pair(views.dk, at.b, at.h / sizes.heads_per_key_head(), row, column, dk[2 * half] * sizes.scale,
                          dk[2 * half + 1] * sizes.scale);
      store_gradient_pair(views.dv, at.b, at.h / sizes.heads_per_key_head(), row, column, dv[2 * half] * dropout_scale,
                          dv[2 * half + 1] * dropout_scale);
    }
  }
}

// Starts the copies of a tile of queries: what no query stands at is zeros, which add nothing.
template <class T, int kHeadSize>
__device__ void start_tile(KeyMemory<T, kHeadSize>& memory, int buffer, const BackwardViews<T>& views,
                           const AttentionSizes& sizes, const HeadTile& at, int query) {
  constexpr int kCount = kQueries<kHeadSize>;
  start_rows<kCount, kHeadSize>(memory.q[buffer], views.q.head(at.b, at.h), query, sizes.queries, sizes.head_size);
  start_rows<kCount, kHeadSize>(memory.dout[buffer], views.dout.head(at.b, at.h), query, sizes.queries,
                                sizes.head_size);
  const int own = static_cast<int>(threadIdx.x);
  if (own < kCount) {
    const QueryStatistics* const from = views.statistics + sizes.first_row(at.b, at.h);
    const bool given = query + own < sizes.queries;
    start_copy_8(&memory.statistics[buffer][own], given ? from + query + own : from, given);
  }
  commit_copies();
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kMatrixThreads)
    add_key_gradients(BackwardViews<T> views, AttentionSizes call, AttentionMask mask) {
  constexpr int kTileQueries = kQueries<kHeadSize>;
  auto& memory = *dynamic_shared<KeyMemory<T, kHeadSize>>();
  HeadTile at(call.key_heads, (call.keys + kKeys - 1) / kKeys, false);
  const AttentionSizes sizes = call.without_padding(at.b);
  const int block_key = at.tile * kKeys, warp_row = warp_index() * kWarpKeys, key = block_key + warp_row;
  clear_padded_keys(views, sizes, at, block_key, kKeys);
  if (block_key >= sizes.differentiated_keys()) return;
  at.h *= sizes.heads_per_key_head();
  if (threadIdx.x == 0) {
    memory.at = at;
    memory.mask = mask.of_head(at.b, at.h);
  }
  start_rows<kKeys, kHeadSize>(memory.k, views.k.head(at.b, at.h), block_key, sizes.keys, sizes.head_size);
  start_rows<kKeys, kHeadSize>(memory.v, views.v.head(at.b, at.h), block_key, sizes.keys, sizes.head_size);
  const int first = sizes.first_query(block_key) / kTileQueries * kTileQueries;
  start_tile(memory, 0, views, sizes, at, first);

  KeySums<T, kHeadSize> sums;
  sums.dk.clear();
  sums.dv.clear();
  LeftOperand<T, kHeadSize, 1, kHeadSize <= 64> k, v;
  wait_for_copies<0>();
  __syncthreads();
  k.load(memory.k, warp_row);
  v.load(memory.v, warp_row);
  const int first_of_warp = sizes.first_query(key);
#pragma unroll 1
  for (int member = 0; member < sizes.heads_per_key_head(); ++member) {
    if (member > 0) {
      __syncthreads();  // all are done with the head before
      if (threadIdx.x == 0) memory.mask = mask.of_head(memory.at.b, ++memory.at.h);
      __syncthreads();
      start_tile(memory, 0, views, sizes, memory.at, first);
    }
#pragma unroll 1
    for (int query = first, buffer = 0; query < sizes.queries; query += kTileQueries, buffer ^= 1) {
      wait_for_copies<0>();
      __syncthreads();  // the tile is there for all, and all are done with the other buffer
      const int next = query + kTileQueries;
      if (next < sizes.queries) start_tile(memory, buffer ^ 1, views, sizes, memory.at, next);
#pragma unroll 1
      for (int begin = 0; begin < kTileQueries; begin += kStep<kHeadSize>) {
        if (query + begin + kStep<kHeadSize> <= first_of_warp || query + begin >= sizes.queries) continue;
        const QueryStep<T> step = {memory.q[buffer] + begin * kRowStride<kHeadSize>,
                                   memory.dout[buffer] + begin * kRowStride<kHeadSize>,
                                   memory.statistics[buffer] + begin, query + begin};
        add_step(sums, k, v, step, sizes, key, mask, memory.mask);
      }
    }
  }
  store(sums, views, sizes, memory.at, key, mask.scale());
}

}  // namespace

void add_key_gradients_matrices(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics) {
  const AttentionSizes sizes = sizes_of(args.forward);
  with_half_type(args.dq.dtype, [&]<class T>(ElementType<T>) {
    with_head_size(sizes.head_size, [&](auto size) {
      constexpr int kHeadSize = decltype(size)::value;
      const int tiles = (sizes.keys + kKeys - 1) / kKeys;
      launch(stream,
             {.grid = dim3(static_cast<unsigned>(sizes.batch * sizes.key_heads * tiles)),
              .block = dim3(kMatrixThreads),
              .shared_bytes = sizeof(KeyMemory<T, kHeadSize>)},
             add_key_gradients<T, kHeadSize>, views_of<T>(args, statistics), sizes, mask_of(args.forward));
    });
  });
}

}  // namespace teratron::cuda
