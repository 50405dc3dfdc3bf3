// Shared by the kernels of attention: a head's rows, the keys that a query sees, the dropout mask. There are three
// families of kernels: "any" takes every type, head size and alignment; "matrix" is for 16-bit types on tensor cores;
// "hopper" is for the same types by that generation's own instructions.
// Each has two backward kernels: in one a block owns keys and sums over queries, in the other it owns queries and sums
// over keys. Nothing is added atomically, so results repeat bit by bit. That takes seven matrix products instead of
// five, since both compute scores and dout v^T.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/backend.h"
#include "ops/cuda/kernels/dropout.h"
#include "ops/cuda/kernels/elements.h"

namespace teratron::cuda {

constexpr float kLog2E = 1.4426950408889634F, kLn2 = 0.6931471805599453F;

// The [S, D] matrix of one head; elements of a row are neighbours.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride;
  __device__ T* operator()(int row) const { return data + row * stride; }
};

// A view [B, S, H, D] of any strides but that of D. Where `shared` query heads read one head of it, heads are numbered
// as those of the queries.
template <class T>
struct HeadsView {
  T* data;
  std::int64_t batch_stride, row_stride, head_stride;
  int shared = 1;

  __device__ HeadRows<T> head(int b, int h) const {
    return {data + b * batch_stride + h / shared * head_stride, row_stride};
  }
};

template <class T>
HeadsView<T> heads_of(const TensorRef& view, std::int64_t shared = 1) {
  return {view.as<T>(), view.stride(0), view.stride(1), view.stride(2), static_cast<int>(shared)};
}

// Whether every row of a view starts on 16 bytes.
template <class T>
bool has_aligned_rows(const TensorRef& view) {
  bool aligned = true;
  for (const int axis : {0, 1, 2}) aligned = aligned && takes_vectors(view.as<T>(), view.stride(axis));
  return aligned;
}

struct AttentionSizes {
  int batch, heads, head_size;
  int key_heads;              // each read by equally many query heads
  int all_queries, all_keys;  // with padding
  int queries, keys;          // all, or those of one sequence without its padding
  bool causal;
  float scale;
  const std::int32_t* lengths;     // [batch], or null
  const std::int32_t* first_keys;  // [B, S_q], or null; not for attention_matrices.h

  // n tokens of text are a call of the first n - context() queries on the first n keys.
  __device__ AttentionSizes without_padding(int b) const {
    AttentionSizes text = *this;
    if (lengths == nullptr) return text;
    const int given = lengths[b] - context();
    text.queries = given < 0 ? 0 : given < all_queries ? given : all_queries;
    text.keys = context() + text.queries;
    return text;
  }
  // Keys that have gradients: none where there is no query.
  __device__ int differentiated_keys() const { return queries > 0 ? keys : 0; }
  // Offset of a head's queries in [B, H, S_q].
  __device__ std::int64_t first_row(int b, int h) const { return (std::int64_t{b} * heads + h) * all_queries; }
  __device__ int heads_per_key_head() const { return heads / key_heads; }
  __device__ int context() const { return all_keys - all_queries; }  // keys before the first query's own
  // Query i sees keys [0, keys_seen(i)); key j is seen by queries [first_query(j), queries).
  __device__ int keys_seen(int query) const {
    const int seen = context() + query + 1;
    return causal && seen < keys ? seen : keys;
  }
  __device__ int first_query(int key) const { return causal && key > context() ? key - context() : 0; }
  // Scores in the domain of exp2.
  __device__ float scale_2() const { return scale * kLog2E; }
};

AttentionSizes sizes_of(const AttentionForward& args);

// A block's part of the work: a tile of rows of one head. Tiles that take longest, which are those of the last queries,
// or of the first keys, come first, and those of one head together, so that its rows stay in the cache.
struct HeadTile {
  int b, h, tile;

  HeadTile() = default;  // in shared memory
  // `heads` of a sequence: those of the queries, or of the keys.
  __device__ HeadTile(int heads, int tiles, bool last_first) {
    const int head = static_cast<int>(blockIdx.x) / tiles, index = static_cast<int>(blockIdx.x) % tiles;
    b = head / heads;
    h = head % heads;
    tile = last_first ? tiles - 1 - index : index;
  }
};

// Beginning of a head's mask among the numbers of its stream, and the stream's step: read from memory once.
struct HeadMask {
  std::int64_t first_element;  // the number of (query 0, key 0)
  std::uint32_t step;
};

// The dropout mask of one call's probabilities.
struct AttentionMask {
  DropoutMask mask;
  std::int64_t first_head, all_heads;  // of one sequence: the first one here, and how many there are on all ranks
  std::int64_t sequence_length, key_stride, first_query, first_key;

  __device__ bool active() const { return mask.active(); }
  __device__ float scale() const { return mask.scale; }

  __device__ HeadMask of_head(int b, int h) const {
    const std::int64_t head = (mask.first_sample() + b) * all_heads + first_head + h;
    return {(head * sequence_length + first_query) * key_stride + first_key, mask.step()};
  }

  // Whether keys from `key` on, a multiple of eight, start on boundaries of eight elements for every query.
  __device__ bool is_aligned(const HeadMask& head) const {
    return key_stride % kMaskBlock == 0 && head.first_element % kMaskBlock == 0;
  }

  // Bit i: whether the probability of key + i is kept. Keys that start on no boundary of eight take two blocks.
  __device__ std::uint32_t kept_of_8(const HeadMask& head, int query, int key) const {
    const std::int64_t element = head.first_element + query * key_stride + key;
    const int before = static_cast<int>(element % kMaskBlock);
    std::uint32_t kept = mask.kept(element / kMaskBlock, head.step);
    if (before != 0) kept = (kept | mask.kept(element / kMaskBlock + 1, head.step) << 8) >> before & 0xFFU;
    return kept;
  }
  // kept_of_8() for masks that are is_aligned(), without a branch.
  __device__ std::uint32_t kept_of_aligned_8(const HeadMask& head, int query, int key) const {
    return mask.kept((head.first_element + query * key_stride + key) / kMaskBlock, head.step);
  }
};

AttentionMask mask_of(const AttentionForward& args);

// Statistics of a query for the backward pass: log2 of the sum of exponentials, and D = dout . out.
struct alignas(8) QueryStatistics {
  float log2_sum, product;
};

// Padding of the tile of `size` rows that starts at `first`: its rows [begin, end), after those of text.
struct PaddedRows {
  int begin, end;

  __device__ PaddedRows(int first, int size, int text_rows, int all_rows)
      : begin(first < text_rows ? text_rows : first), end(first + size < all_rows ? first + size : all_rows) {}

  // Zeros, by all threads of the block.
  template <class T>
  __device__ void clear(const HeadRows<T>& rows, int columns) const {
    for (int i = static_cast<int>(threadIdx.x); i < (end - begin) * columns; i += static_cast<int>(blockDim.x)) {
      rows(begin + i / columns)[i % columns] = T{};
    }
  }
};

// Gradients of keys or values: of T, or sums of float that are not rounded yet.
template <class T>
struct KeyGradients {
  HeadsView<T> rounded;
  HeadsView<float> sums;
  bool keeps_sums, accumulate;

  __device__ void store(int b, int h, int key, int column, float value) const {
    if (keeps_sums) {
      float* const to = sums.head(b, h)(key) + column;
      *to = accumulate ? *to + value : value;
    } else {
      T* const to = rounded.head(b, h)(key) + column;
      *to = narrowed<T>(accumulate ? widened(*to) + value : value);
    }
  }

  __device__ void clear(int b, int h, const PaddedRows& padded, int columns) const {
    if (accumulate) return;
    keeps_sums ? padded.clear(sums.head(b, h), columns) : padded.clear(rounded.head(b, h), columns);
  }
};

template <class T>
struct ForwardViews {
  HeadsView<T> out;
  HeadsView<const T> q, k, v;
  float* log_sum_exp;  // [B, H, S_q]
};

template <class T>
struct BackwardViews {
  HeadsView<T> dq;
  KeyGradients<T> dk, dv;
  HeadsView<const T> dout, q, k, v;
  const QueryStatistics* statistics;  // [B, H, S_q]
};

// Clears the results of a tile's padded queries or keys.
template <class T>
__device__ void clear_padded_queries(const ForwardViews<T>& views, const AttentionSizes& sizes, const HeadTile& at,
                                     int query, int tile_size) {
  const PaddedRows padded(query, tile_size, sizes.queries, sizes.all_queries);
  padded.clear(views.out.head(at.b, at.h), sizes.head_size);
  padded.clear(HeadRows<float>{views.log_sum_exp + sizes.first_row(at.b, at.h), 1}, 1);
}

template <class T>
__device__ void clear_padded_queries(const BackwardViews<T>& views, const AttentionSizes& sizes, const HeadTile& at,
                                     int query, int tile_size) {
  const PaddedRows padded(query, tile_size, sizes.queries, sizes.all_queries);
  padded.clear(views.dq.head(at.b, at.h), sizes.head_size);
}

template <class T>
__device__ void clear_padded_keys(const BackwardViews<T>& views, const AttentionSizes& sizes, const HeadTile& at,
                                  int key, int tile_size) {
  const PaddedRows padded(key, tile_size, sizes.differentiated_keys(), sizes.all_keys);
  views.dk.clear(at.b, at.h, padded, sizes.head_size);
  views.dv.clear(at.b, at.h, padded, sizes.head_size);
}

template <class T>
ForwardViews<T> views_of(const AttentionForward& args) {
  return {.out = heads_of<T>(args.out),
          .q = heads_of<const T>(args.q),
          .k = heads_of<const T>(args.k, args.heads_per_key_head()),
          .v = heads_of<const T>(args.v, args.heads_per_key_head()),
          .log_sum_exp = args.log_sum_exp.as<float>()};
}

template <class T>
KeyGradients<T> key_gradients_of(const TensorRef& view, bool accumulate) {
  KeyGradients<T> gradients = {
      .rounded = {}, .sums = {}, .keeps_sums = size_of(view.dtype) != sizeof(T), .accumulate = accumulate};
  if (gradients.keeps_sums) {
    gradients.sums = heads_of<float>(view);
  } else {
    gradients.rounded = heads_of<T>(view);
  }
  return gradients;
}

template <class T>
BackwardViews<T> views_of(const AttentionBackward& args, const QueryStatistics* statistics) {
  return {.dq = heads_of<T>(args.dq),
          .dk = key_gradients_of<T>(args.dk, args.accumulate_kv),
          .dv = key_gradients_of<T>(args.dv, args.accumulate_kv),
          .dout = heads_of<const T>(args.dout),
          .q = heads_of<const T>(args.forward.q),
          .k = heads_of<const T>(args.forward.k, args.forward.heads_per_key_head()),
          .v = heads_of<const T>(args.forward.v, args.forward.heads_per_key_head()),
          .statistics = statistics};
}

// Attention of any type, head size and alignment (attention_any.cu).
void attend_any(cudaStream_t stream, const AttentionForward& args);
void differentiate_attention_any(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics);

}  // namespace teratron::cuda
