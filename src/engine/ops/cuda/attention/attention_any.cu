// Attention of any type, head size and alignment, in fp32 on ordinary cores: tiles of 64 queries and 64 keys, with the
// running maximum and sum of FlashAttention (Dao et al., arXiv 2205.14135). A block sums up to 128 columns of a head;
// for longer heads several blocks compute the same scores.
#include "ops/cuda/attention/attention.h"

#include "ops/cuda/attention/attention_tiles.h"
#include "ops/cuda/runtime/device.h"
#include "ops/storage.h"

namespace teratron::cuda {
namespace {

// The score of a key that a query does not see, less than any other. Finite, since a query may meet hidden keys before
// it sees one; then their terms vanish from the sums.
constexpr float kHidden = -3e38F;

// State of a thread's four queries while it goes through the keys.
template <int kColumns>
struct RunningSoftmax {
  float max[kThreadRows], sum[kThreadRows];  // of scores in the domain of exp2; this thread's part of the sum
  RowSums<kColumns> out = {};

  __device__ RunningSoftmax() {
    for (int i = 0; i < kThreadRows; ++i) {
      max[i] = kHidden;
      sum[i] = 0;
    }
  }
};

// Over the 16 threads that share rows.
template <class Combine>
__device__ float over_row(float value, const Combine& combine) {
  for (int distance = 8; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, distance));
  }
  return value;
}

__device__ inline float larger(float a, float b) { return a > b ? a : b; }

// Scores become exp2(score - maximum); what was summed up to a smaller maximum is brought to the new one.
template <bool kDocuments, int kColumns>
__device__ void exponentiate(Scores& scores, RunningSoftmax<kColumns>& state, const AttentionSizes& sizes,
                             const TileMemory& memory, int query, int key) {
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
    const int seen = sizes.keys_seen(query + thread_row(i)) - key;
    const int hidden = kDocuments ? memory.first_keys[thread_row(i)] - key : 0;
    float max = state.max[i];
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) {
      const bool sees = score_column(j) < seen && (!kDocuments || score_column(j) >= hidden);
      scores[i][j] = sees ? scores[i][j] * sizes.scale_2() : kHidden;
      max = larger(max, scores[i][j]);
    }
    max = over_row(max, larger);
    const float correction = fast_exp2(state.max[i] - max);
    state.max[i] = max;
    state.sum[i] *= correction;
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) {
      scores[i][j] = fast_exp2(scores[i][j] - max);
      state.sum[i] += scores[i][j];
    }
#pragma unroll
    for (int c = 0; c < kColumns / 16; ++c) state.out[i][c] *= correction;
  }
}

__device__ inline void drop(Scores& scores, const AttentionMask& mask, const TileMemory& memory) {
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) {
      scores[i][j] *= dropout_factor(mask, memory, thread_row(i), score_column(j));
    }
  }
}

template <class T, int kColumns, bool kDocuments>
__global__ void __launch_bounds__(kTileThreads) attend(ForwardViews<T> views, AttentionSizes call, AttentionMask mask) {
  __shared__ TileMemory memory;
  __shared__ HeadTile at;  // all registers are taken
  if (threadIdx.x == 0) at = HeadTile(call.heads, (call.queries + kTile - 1) / kTile, true);
  __syncthreads();
  const AttentionSizes sizes = call.without_padding(at.b);
  const int query = at.tile * kTile, column = static_cast<int>(blockIdx.y) * kColumns;
  if (column == 0) clear_padded_queries(views, sizes, at, query, kTile);
  if (query >= sizes.queries) return;
  const int last = (query + kTile < sizes.queries ? query + kTile : sizes.queries) - 1, end = sizes.keys_seen(last);
  const RowRange<T> q = {views.q.head(at.b, at.h), query, sizes.queries};
  RowRange<T> k = {views.k.head(at.b, at.h), 0, sizes.keys}, v = {views.v.head(at.b, at.h), 0, sizes.keys};
  RunningSoftmax<kColumns> state;
  int key = 0;
  if (kDocuments) {
    load_first_keys(sizes, at.b, query, memory);
    __syncthreads();
    key = memory.first_keys[0] / kTile * kTile;
  }
  for (; key < end; key += kTile) {
    k.begin = v.begin = key;
    Scores scores;
    multiply_rows(scores, q, k, sizes.head_size, memory);
    exponentiate<kDocuments>(scores, state, sizes, memory, query, key);
    if (mask.active()) {
      draw_mask(mask, mask.of_head(at.b, at.h), query, key, memory);
      __syncthreads();
      drop(scores, mask, memory);
    }
    store_weights(scores, memory);
    add_weighted_rows<kColumns>(state.out, v, column, sizes.head_size, memory);
  }
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
    const int row = query + thread_row(i);
    const float sum = over_row(state.sum[i], [](float a, float b) { return a + b; });
    if (row >= sizes.queries) continue;
    if (column == 0 && threadIdx.x % 16 == 0) {
      views.log_sum_exp[sizes.first_row(at.b, at.h) + row] = state.max[i] * kLn2 + logf(sum);
    }
#pragma unroll
    for (int j = 0; j < kColumns / 16; ++j) {
      const int c = column + sum_column(j);
      if (c < sizes.head_size) views.out.head(at.b, at.h)(row)[c] = narrowed<T>(state.out[i][j] / sum);
    }
  }
}

// Scores become probabilities with dropout and `gradients`, of those, become ds. kRowsAreKeys: of the tile; columns are
// then queries.
template <bool kRowsAreKeys, bool kDocuments>
__device__ void differentiate(Scores& scores, Scores& gradients, const AttentionSizes& sizes,
                              const QueryStatistics* statistics, const AttentionMask& mask, const TileMemory& memory,
                              int query, int key) {
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) {
      const int q = kRowsAreKeys ? score_column(j) : thread_row(i), k = kRowsAreKeys ? thread_row(i) : score_column(j);
      const bool seen = query + q < sizes.queries && key + k < sizes.keys_seen(query + q) &&
                        (!kDocuments || key + k >= memory.first_keys[q]);
      const QueryStatistics of_query = seen ? statistics[query + q] : QueryStatistics{};
      const float p = seen ? fast_exp2(scores[i][j] * sizes.scale_2() - of_query.log2_sum) : 0.0F;
      const float factor = dropout_factor(mask, memory, q, k);
      scores[i][j] = p * factor;
      gradients[i][j] = p * (gradients[i][j] * factor - of_query.product);
    }
  }
}

template <class T, int kColumns, bool kDocuments>
__global__ void __launch_bounds__(kTileThreads)
    add_key_gradients(BackwardViews<T> views, AttentionSizes call, AttentionMask mask) {
  __shared__ TileMemory memory;
  const HeadTile at(call.key_heads, (call.keys + kTile - 1) / kTile, false);
  const AttentionSizes sizes = call.without_padding(at.b);
  const int key = at.tile * kTile, column = static_cast<int>(blockIdx.y) * kColumns;
  if (column == 0) clear_padded_keys(views, sizes, at, key, kTile);
  if (key >= sizes.differentiated_keys()) return;
  RowSums<kColumns> dk = {}, dv = {};
  const int members = sizes.heads_per_key_head();
  for (int h = at.h * members; h < (at.h + 1) * members; ++h) {  // the query heads that read these keys
    const QueryStatistics* const statistics = views.statistics + sizes.first_row(at.b, h);
    const RowRange<T> k = {views.k.head(at.b, h), key, sizes.keys}, v = {views.v.head(at.b, h), key, sizes.keys};
    RowRange<T> q = {views.q.head(at.b, h), 0, sizes.queries}, dout = {views.dout.head(at.b, h), 0, sizes.queries};
    for (int query = sizes.first_query(key) / kTile * kTile; query < sizes.queries; query += kTile) {
      if (kDocuments) {
        load_first_keys(sizes, at.b, query, memory);
        __syncthreads();
        if (memory.first_keys[0] >= key + kTile) break;  // and so are those of all later queries
      }
      q.begin = dout.begin = query;
      Scores scores, gradients;
      if (mask.active()) draw_mask(mask, mask.of_head(at.b, h), query, key, memory);
      multiply_rows(scores, k, q, sizes.head_size, memory);
      multiply_rows(gradients, v, dout, sizes.head_size, memory);
      differentiate<true, kDocuments>(scores, gradients, sizes, statistics, mask, memory, query, key);
      store_weights(scores, memory);
      add_weighted_rows<kColumns>(dv, dout, column, sizes.head_size, memory);
      store_weights(gradients, memory);
      add_weighted_rows<kColumns>(dk, q, column, sizes.head_size, memory);
    }
    if (kDocuments) __syncthreads();  // all have read the first keys
  }
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns / 16; ++j) {
      const int row = key + thread_row(i), c = column + sum_column(j);
      if (row >= sizes.keys || c >= sizes.head_size) continue;
      views.dk.store(at.b, at.h, row, c, dk[i][j] * sizes.scale);
      views.dv.store(at.b, at.h, row, c, dv[i][j]);
    }
  }
}

template <class T, int kColumns, bool kDocuments>
__global__ void __launch_bounds__(kTileThreads)
    add_query_gradients(BackwardViews<T> views, AttentionSizes call, AttentionMask mask) {
  __shared__ TileMemory memory;
  const HeadTile at(call.heads, (call.queries + kTile - 1) / kTile, true);
  AttentionSizes sizes = call.without_padding(at.b);
  const int begin = at.tile * kTile, column = static_cast<int>(blockIdx.y) * kColumns;
  if (column == 0) clear_padded_queries(views, sizes, at, begin, kTile);
  if (begin >= sizes.queries) return;
  // The block's last query sees as many keys as any.
  sizes.keys = sizes.keys_seen((begin + kTile < sizes.queries ? begin + kTile : sizes.queries) - 1);
  if (threadIdx.x == 0) {
    memory.at = at;
    memory.queries = sizes.queries;
  }
  if (kDocuments) load_first_keys(sizes, at.b, begin, memory);
  __syncthreads();
  RowSums<kColumns> dq = {};
  for (int key = kDocuments ? memory.first_keys[0] / kTile * kTile : 0; key < sizes.keys; key += kTile) {
    const int b = memory.at.b, h = memory.at.h, query = memory.at.tile * kTile;
    sizes.queries = memory.queries;
    const RowRange<T> q = {views.q.head(b, h), query, sizes.queries};
    const RowRange<T> dout = {views.dout.head(b, h), query, sizes.queries};
    const RowRange<T> k = {views.k.head(b, h), key, sizes.keys}, v = {views.v.head(b, h), key, sizes.keys};
    const QueryStatistics* const statistics = views.statistics + sizes.first_row(b, h);
    Scores scores, gradients;
    if (mask.active()) draw_mask(mask, mask.of_head(b, h), query, key, memory);
    multiply_rows(scores, q, k, sizes.head_size, memory);
    multiply_rows(gradients, dout, v, sizes.head_size, memory);
    differentiate<false, kDocuments>(scores, gradients, sizes, statistics, mask, memory, query, key);
    store_weights(gradients, memory);
    add_weighted_rows<kColumns>(dq, k, column, sizes.head_size, memory);
  }
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
    const int row = memory.at.tile * kTile + thread_row(i);
#pragma unroll
    for (int j = 0; j < kColumns / 16; ++j) {
      const int c = column + sum_column(j);
      if (row >= memory.queries || c >= sizes.head_size) continue;
      views.dq.head(memory.at.b, memory.at.h)(row)[c] = narrowed<T>(dq[i][j] * sizes.scale);
    }
  }
}

template <int kColumns>
LaunchShape shape_of(const AttentionSizes& sizes, int heads, int rows) {
  return {.grid = dim3(static_cast<unsigned>(sizes.batch * heads * ((rows + kTile - 1) / kTile)),
                       static_cast<unsigned>((sizes.head_size + kColumns - 1) / kColumns)),
          .block = dim3(kTileThreads)};
}

// call(std::integral_constant, std::bool_constant) with the columns that a block sums, and whether documents share the
// sequences.
template <class Call>
void with_columns(const AttentionSizes& sizes, const Call& call) {
  const auto with_documents = [&](auto columns) {
    sizes.first_keys != nullptr ? call(columns, std::true_type()) : call(columns, std::false_type());
  };
  if (sizes.head_size <= 64) {
    with_documents(std::integral_constant<int, 64>());
  } else {
    with_documents(std::integral_constant<int, 128>());
  }
}

}  // namespace

void attend_any(cudaStream_t stream, const AttentionForward& args) {
  const AttentionSizes sizes = sizes_of(args);
  choose_by_storage(args.q.dtype, [&]<class T>(ElementType<T>) {
    with_columns(sizes, [&](auto columns, auto documents) {
      constexpr int kColumns = decltype(columns)::value;
      constexpr bool kDocuments = decltype(documents)::value;
      launch(stream, shape_of<kColumns>(sizes, sizes.heads, sizes.queries), attend<T, kColumns, kDocuments>,
             views_of<T>(args), sizes, mask_of(args));
    });
  });
}

void differentiate_attention_any(cudaStream_t stream, const AttentionBackward& args,
                                 const QueryStatistics* statistics) {
  const AttentionSizes sizes = sizes_of(args.forward);
  choose_by_storage(args.dq.dtype, [&]<class T>(ElementType<T>) {
    with_columns(sizes, [&](auto columns, auto documents) {
      constexpr int kColumns = decltype(columns)::value;
      constexpr bool kDocuments = decltype(documents)::value;
      const BackwardViews<T> views = views_of<T>(args, statistics);
      launch(stream, shape_of<kColumns>(sizes, sizes.key_heads, sizes.keys), add_key_gradients<T, kColumns, kDocuments>,
             views, sizes, mask_of(args.forward));
      launch(stream, shape_of<kColumns>(sizes, sizes.heads, sizes.queries),
             add_query_gradients<T, kColumns, kDocuments>, views, sizes, mask_of(args.forward));
    });
  });
}

}  // namespace teratron::cuda
