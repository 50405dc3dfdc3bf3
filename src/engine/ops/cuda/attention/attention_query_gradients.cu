// Gradients of queries on tensor cores. A block owns 64 queries, a warp 16, and walks the keys that they see:
//   dq += scale ds k,   ds = p (m dout v^T - D).
#include "ops/cuda/attention/attention_matrices.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {
namespace {

constexpr int kWarpQueries = 16, kQueries = kWarpQueries * kMatrixWarps;
constexpr int kBlocks = 2;  // that are to share a multiprocessor: registers allow no more
constexpr int kStep = 32;   // keys whose scores are in registers at a time

// In shared memory at a time.
template <int kHeadSize>
constexpr int kKeys = kHeadSize <= 64 ? 64 : 32;

template <class T, int kHeadSize>
struct QueryMemory {
  T q[kQueries * kRowStride<kHeadSize>], dout[kQueries * kRowStride<kHeadSize>];
  T k[2][kKeys<kHeadSize> * kRowStride<kHeadSize>];
  T v[2][kKeys<kHeadSize> * kRowStride<kHeadSize>];
  HeadMask mask;  // of the block's head
};

using QueryScores = WarpSums<1, kStep / 8>;

// `gradients`, of probabilities with dropout, become ds.
__device__ void differentiate(const QueryScores& scores, QueryScores& gradients, const RowStatistics& statistics,
                              const AttentionSizes& sizes, int query, int key, const AttentionMask& mask,
                              const WarpMask<kWarpQueries, kStep>& warp_mask) {
  const float scale = sizes.scale_2(), dropout_scale = mask.scale();
  const bool all_seen = key + kStep <= sizes.keys_seen(query);
  std::uint32_t kept[2] = {~0U, ~0U};  // of a lane's two rows
  if (mask.active()) {
#pragma unroll
    for (int half = 0; half < 2; ++half) kept[half] = warp_mask.keys_of(part_row(2 * half)) >> part_column(0);
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int row = part_row(e);
    const int seen = all_seen ? kStep : sizes.keys_seen(query + row) - key - part_column(e);
    const QueryStatistics& of_query = statistics.of_row[e / 2];
#pragma unroll
    for (int n = 0; n < kStep / 8; ++n) {
      const float p = 8 * n < seen ? fast_exp2(scores.parts[0][n][e] * scale - of_query.log2_sum) : 0.0F;
      float gradient = gradients.parts[0][n][e] * dropout_scale;
      if (mask.active() && (kept[e / 2] >> (8 * n + e % 2) & 1) == 0) gradient = 0;
      gradients.parts[0][n][e] = p * (gradient - of_query.product);
    }
  }
}

template <class T, int kHeadSize>
__device__ void store(const WarpSums<1, kHeadSize / 8>& dq, const BackwardViews<T>& views, const AttentionSizes& sizes,
                      const HeadTile& at, int query) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = query + part_row(2 * half);
    if (row >= sizes.queries) continue;
    T* const to = views.dq.head(at.b, at.h)(row) + part_column(0);
#pragma unroll
    for (int n = 0; n < kHeadSize / 8; ++n) {
      const MatrixC& part = dq.parts[0][n];
      if (8 * n < sizes.head_size) {
        store_pair(to + 8 * n, part[2 * half] * sizes.scale, part[2 * half + 1] * sizes.scale);
      }
    }
  }
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kMatrixThreads, kBlocks)
    add_query_gradients(BackwardViews<T> views, AttentionSizes call, AttentionMask mask) {
  constexpr int kTileKeys = kKeys<kHeadSize>;
  auto& memory = *dynamic_shared<QueryMemory<T, kHeadSize>>();
  const HeadTile at(call.heads, (call.queries + kQueries - 1) / kQueries, true);
  const AttentionSizes sizes = call.without_padding(at.b);
  const int block_query = at.tile * kQueries, warp_row = warp_index() * kWarpQueries, query = block_query + warp_row;
  clear_padded_queries(views, sizes, at, block_query, kQueries);
  if (block_query >= sizes.queries) return;
  const int last = (block_query + kQueries < sizes.queries ? block_query + kQueries : sizes.queries) - 1;
  const int block_end = sizes.keys_seen(last), warp_end = sizes.keys_seen(query + kWarpQueries - 1);
  const auto start_tile = [&](int key) {
    const int buffer = key / kTileKeys % 2;
    start_rows<kTileKeys, kHeadSize>(memory.k[buffer], views.k.head(at.b, at.h), key, sizes.keys, sizes.head_size);
    start_rows<kTileKeys, kHeadSize>(memory.v[buffer], views.v.head(at.b, at.h), key, sizes.keys, sizes.head_size);
    commit_copies();
  };
  start_rows<kQueries, kHeadSize>(memory.q, views.q.head(at.b, at.h), block_query, sizes.queries, sizes.head_size);
  start_rows<kQueries, kHeadSize>(memory.dout, views.dout.head(at.b, at.h), block_query, sizes.queries,
                                  sizes.head_size);
  start_tile(0);
  if (threadIdx.x == 0) memory.mask = mask.of_head(at.b, at.h);  // the first tile's barrier is before its first reader

  const RowStatistics statistics(views.statistics + sizes.first_row(at.b, at.h), query, sizes.queries);
  WarpSums<1, kHeadSize / 8> dq;
  dq.clear();
  LeftOperand<T, kHeadSize, 1, kHeadSize <= 96> q, dout;
#pragma unroll 1
  for (int tile = 0; tile < block_end; tile += kTileKeys) {
    wait_for_copies<0>();
    __syncthreads();  // the tile is there for all, and all are done with the other buffer
    if (tile == 0) {
      q.load(memory.q, warp_row);
      dout.load(memory.dout, warp_row);
    }
    if (tile + kTileKeys < block_end) start_tile(tile + kTileKeys);
    const int buffer = tile / kTileKeys % 2;
#pragma unroll 1
    for (int key = tile; key < tile + kTileKeys && key < warp_end; key += kStep) {
      WarpMask<kWarpQueries, kStep> warp_mask;
      if (mask.active()) warp_mask.draw(mask, memory.mask, query, key);
      const int offset = (key - tile) * kRowStride<kHeadSize>;
      QueryScores scores, gradients;
      scores.clear();
      gradients.clear();
      multiply_by_rows<T, kHeadSize>(scores, q, memory.k[buffer] + offset);
      multiply_by_rows<T, kHeadSize>(gradients, dout, memory.v[buffer] + offset);
      differentiate(scores, gradients, statistics, sizes, query, key, mask, warp_mask);
      add_weighted<T, kHeadSize>(dq, gradients, memory.k[buffer] + offset);
    }
  }
  store<T, kHeadSize>(dq, views, sizes, at, query);
}

}  // namespace

void add_query_gradients_matrices(cudaStream_t stream, const AttentionBackward& args,
                                  const QueryStatistics* statistics) {
  const AttentionSizes sizes = sizes_of(args.forward);
  with_half_type(args.dq.dtype, [&]<class T>(ElementType<T>) {
    with_head_size(sizes.head_size, [&](auto size) {
      constexpr int kHeadSize = decltype(size)::value;
      const int tiles = (sizes.queries + kQueries - 1) / kQueries;
      launch(stream,
             {.grid = dim3(static_cast<unsigned>(sizes.batch * sizes.heads * tiles)),
              .block = dim3(kMatrixThreads),
              .shared_bytes = sizeof(QueryMemory<T, kHeadSize>)},
             add_query_gradients<T, kHeadSize>, views_of<T>(args, statistics), sizes, mask_of(args.forward));
    });
  });
}

}  // namespace teratron::cuda
