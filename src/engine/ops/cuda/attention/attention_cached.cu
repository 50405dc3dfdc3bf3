// Attention of a few queries on a key/value cache. There are too few of them for tiles, and all time goes into reading
// keys and values once. A block takes one query of one head and a part of the cache's rows. Its groups of eight lanes
// take four keys at a time, each with its own running softmax, and are merged at the end. Where queries and heads alone
// are too few blocks for a device, the cache has several parts, whose results go through scratch memory to a second
// kernel. Which keys a part and a group take depends on shapes, the window and the sequence's length alone, and they
// are put together in order, so results repeat bit by bit. Parts before the window and after the text have nothing to
// do.
#include <algorithm>
#include <limits>

#include "ops/cuda/attention/attention.h"
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256, kLanes = 8, kGroups = kThreads / kLanes;
constexpr int kKeys = 4, kRound = kGroups * kKeys;               // that a group and a block take at a time
constexpr int kColumns = 128, kLaneColumns = kColumns / kLanes;  // of the output, that a block and a lane make
constexpr std::int64_t kWantedBlocks = 256;                      // about two for each multiprocessor of a large card

template <class T>
struct CachedViews {
  HeadsView<T> out, keys, values;
  HeadsView<const T> q, k, v;
  const std::int32_t* lengths;           // [batch]
  int heads, shared, tokens, head_size;  // `shared` query heads read one head of the cache
  int window;                            // keys that a query sees at most; 0: all
  float scale_2;                         // of scores in the domain of exp2
};

// Softmax over some keys, for one element of the output: the largest score, and with weights relative to it, their sum
// and that of weighted values.
struct Softmax {
  float max, sum, out;
};

// Parts of the cache, and their results if there are several.
struct CacheParts {
  int count, keys;     // of a part, whole rounds
  float* max_and_sum;  // [queries, parts, 2]
  float* out;          // [queries, parts, head size]
};

// The query of a block.
struct CachedQuery {
  int b, h, token, length, first, seen;  // keys that were cached; it sees keys [first, seen)

  template <class T>
  __device__ explicit CachedQuery(const CachedViews<T>& views) : token(static_cast<int>(blockIdx.x) % views.tokens) {
    const int head = static_cast<int>(blockIdx.x) / views.tokens;
    b = head / views.heads;
    h = head % views.heads;
    length = views.lengths[b];
    seen = length + token + 1;
    first = views.window > 0 && seen > views.window ? seen - views.window : 0;
  }
};

// Rows of keys, or of values. Tokens that came with this call are read where they came from, so that no block waits for
// those that write them to the cache.
template <class T>
struct KeyRows {
  HeadRows<T> cached;
  HeadRows<const T> own;
  int length;

  __device__ const T* operator()(int key) const { return key < length ? cached(key) : own(key - length); }
};

// Writes the block's part of the cached rows that become k and v. Rows that query heads share are the first one's part.
template <class T>
__device__ void append(const CachedViews<T>& views, const CachedQuery& at) {
  if (at.h % views.shared != 0) return;
  const T *const k = views.k.head(at.b, at.h)(at.token), *const v = views.v.head(at.b, at.h)(at.token);
  T* const key = views.keys.head(at.b, at.h)(at.length + at.token);
  T* const value = views.values.head(at.b, at.h)(at.length + at.token);
  for (int c = static_cast<int>(threadIdx.x); c < views.head_size; c += kThreads) {
    key[c] = k[c];
    value[c] = v[c];
  }
}

// Over the lanes of a group.
__device__ inline float over_group(float value) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffU, value, distance);
  return value;
}

// Scores of keys first, first + kGroups, ..; -infinity from `end` on. All lanes of a warp call it. kCount: elements
// that a lane takes at once.
template <int kCount, class T>
__device__ void compute_scores(float (&scores)[kKeys], const KeyRows<T>& keys, const float* query, int head_size,
                               int first, int end) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) scores[i] = 0;
  for (int c = lane * kCount; c < head_size; c += kLanes * kCount) {
    Chunk<T, kCount> chunks[kKeys];
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      const int key = first + i * kGroups;
      chunks[i] = load_chunk_if<kCount>(key < end, keys(key) + c);
    }
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      for (int e = 0; e < kCount; ++e) scores[i] += query[c + e] * chunks[i][e];
    }
  }
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const float score = over_group(scores[i]);
    scores[i] = first + i * kGroups < end ? score : -std::numeric_limits<float>::infinity();
  }
}

// Softmax over the keys that a group has read.
struct GroupSoftmax {
  float max = -std::numeric_limits<float>::infinity(), sum = 0, out[kLaneColumns] = {};

  // Turns the scores, of which one is finite, into weights, and rescales the sums to the new maximum.
  __device__ void weigh(float (&scores)[kKeys]) {
    float larger = max;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) larger = larger > scores[i] ? larger : scores[i];
    const float correction = fast_exp2(max - larger);
    max = larger;
    sum *= correction;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      scores[i] = fast_exp2(scores[i] - larger);
      sum += scores[i];
    }
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) out[c] *= correction;
  }

  // The group's columns of the values of the keys that `weights` are of. Those from `end` on have weight 0.
  template <int kCount, class T>
  __device__ void add_values(const float (&weights)[kKeys], const KeyRows<T>& values, int column, int head_size,
                             int first, int end) {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
#pragma unroll
    for (int piece = 0; piece < kLaneColumns / kCount; ++piece) {
      const int c = column + (piece * kLanes + lane) * kCount;
      if (c >= head_size) continue;
      Chunk<T, kCount> chunks[kKeys];
#pragma unroll
      for (int i = 0; i < kKeys; ++i) {
        const int key = first + i * kGroups;
        chunks[i] = load_chunk_if<kCount>(key < end, values(key) + c);
      }
#pragma unroll
      for (int i = 0; i < kKeys; ++i) {
        for (int e = 0; e < kCount; ++e) out[piece * kCount + e] += weights[i] * chunks[i][e];
      }
    }
  }
};

// at(i) for all i < count put together, in order; the first has a key.
template <class At>
__device__ Softmax together(int count, const At& at) {
  Softmax all = {at(0).max, 0, 0};
  for (int i = 1; i < count; ++i) {
    const float max = at(i).max;
    all.max = max > all.max ? max : all.max;
  }
  for (int i = 0; i < count; ++i) {
    const Softmax one = at(i);
    const float factor = fast_exp2(one.max - all.max);
    all.sum += factor * one.sum;
    all.out += factor * one.out;
  }
  return all;
}

struct GroupMemory {
  float max[kGroups], sum[kGroups], out[kGroups][kColumns];

  template <int kCount>
  __device__ void keep(const GroupSoftmax& state) {
    const int group = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
    if (lane == 0) {
      max[group] = state.max;
      sum[group] = state.sum;
    }
#pragma unroll
    for (int i = 0; i < kLaneColumns; ++i) {
      out[group][(i / kCount * kLanes + lane) * kCount + i % kCount] = state.out[i];
    }
  }
};

// Two blocks a multiprocessor: registers for all keys and values that a lane loads at a time.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, 2) attend_cached(CachedViews<T> views, CacheParts parts) {
  __shared__ GroupMemory memory;
  float* const query = dynamic_shared<float>();  // [head_size]
  const CachedQuery at(views);
  const int thread = static_cast<int>(threadIdx.x), column = static_cast<int>(blockIdx.y) * kColumns;
  const int part = static_cast<int>(blockIdx.z), part_begin = part * parts.keys;
  const int end = at.seen - part_begin < parts.keys ? at.seen : part_begin + parts.keys;
  const int begin = part_begin > at.first ? part_begin : at.first;
  if (column == 0 && part == 0) append(views, at);
  if (begin >= end) return;
  const T* const q = views.q.head(at.b, at.h)(at.token);
  for (int c = thread; c < views.head_size; c += kThreads) query[c] = widened(q[c]) * views.scale_2;
  __syncthreads();

  const KeyRows<T> keys = {views.keys.head(at.b, at.h), views.k.head(at.b, at.h), at.length};
  const KeyRows<T> values = {views.values.head(at.b, at.h), views.v.head(at.b, at.h), at.length};
  GroupSoftmax state;
  for (int round = begin; round < end; round += kRound) {
    const int first = round + thread / kLanes;
    float scores[kKeys];
    compute_scores<kCount>(scores, keys, query, views.head_size, first, end);
    if (first >= end) continue;
    state.weigh(scores);
    state.template add_values<kCount>(scores, values, column, views.head_size, first, end);
  }
  memory.template keep<kCount>(state);
  __syncthreads();
  if (thread >= kColumns || column + thread >= views.head_size) return;
  const Softmax all = together(kGroups, [&](int group) -> Softmax {
    return {memory.max[group], memory.sum[group], memory.out[group][thread]};
  });
  if (parts.count == 1) {
    views.out.head(at.b, at.h)(at.token)[column + thread] = narrowed<T>(all.out / all.sum);
    return;
  }
  const std::int64_t slot = std::int64_t{blockIdx.x} * parts.count + part;
  parts.out[slot * views.head_size + column + thread] = all.out;
  if (column + thread != 0) return;
  parts.max_and_sum[2 * slot] = all.max;
  parts.max_and_sum[2 * slot + 1] = all.sum;
}

template <class T>
__global__ void __launch_bounds__(kColumns) put_parts_together(CachedViews<T> views, CacheParts parts) {
  const CachedQuery at(views);
  const int column = static_cast<int>(blockIdx.y) * kColumns + static_cast<int>(threadIdx.x);
  if (column >= views.head_size) return;
  const std::int64_t first = std::int64_t{blockIdx.x} * parts.count;
  const int first_part = at.first / parts.keys, end_part = (at.seen + parts.keys - 1) / parts.keys;
  const Softmax all = together(end_part - first_part, [&](int part) -> Softmax {
    const std::int64_t slot = first + first_part + part;
    return {parts.max_and_sum[2 * slot], parts.max_and_sum[2 * slot + 1], parts.out[slot * views.head_size + column]};
  });
  views.out.head(at.b, at.h)(at.token)[column] = narrowed<T>(all.out / all.sum);
}

template <class T>
CachedViews<T> cached_views_of(const CachedAttention& args) {
  const std::int64_t shared = args.q.dim(2) / args.keys.dim(2);
  return {.out = heads_of<T>(args.out),
          .keys = heads_of<T>(args.keys, shared),
          .values = heads_of<T>(args.values, shared),
          .q = heads_of<const T>(args.q),
          .k = heads_of<const T>(args.k, shared),
          .v = heads_of<const T>(args.v, shared),
          .lengths = args.lengths.as<std::int32_t>(),
          .heads = static_cast<int>(args.q.dim(2)),
          .shared = static_cast<int>(shared),
          .tokens = static_cast<int>(args.q.dim(1)),
          .head_size = static_cast<int>(args.q.dim(3)),
          .window = static_cast<int>(std::min(args.window, args.keys.dim(1))),
          .scale_2 = static_cast<float>(args.scale) * kLog2E};
}

// Parts of a cache of capacity `room`, such that `blocks` blocks a part fill a device.
CacheParts parts_of_cache(std::int64_t room, std::int64_t blocks) {
  const std::int64_t wanted = (kWantedBlocks + blocks - 1) / blocks, least = (room + wanted - 1) / wanted;
  const std::int64_t keys = (least + kRound - 1) / kRound * kRound;
  return {.count = static_cast<int>((room + keys - 1) / keys), .keys = static_cast<int>(keys)};
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_cached_attention(const CachedAttention& args) {
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    const std::int64_t head_size = args.q.dim(3), queries = args.q.elements() / head_size;
    const std::int64_t column_blocks = (head_size + cuda::kColumns - 1) / cuda::kColumns;
    bool vectors = head_size % cuda::Vector<T>::kSize == 0;
    for (const TensorRef& view : {args.k, args.v, args.keys, args.values}) {
      vectors = vectors && cuda::has_aligned_rows<T>(view);
    }
    const cuda::CachedViews<T> views = cuda::cached_views_of<T>(args);
    cuda::CacheParts parts = cuda::parts_of_cache(args.keys.dim(1), queries * column_blocks);
    if (parts.count > 1) {
      parts.max_and_sum = scratch_.of<float>(queries * parts.count * (2 + head_size));
      parts.out = parts.max_and_sum + 2 * queries * parts.count;
    }
    const dim3 grid(static_cast<unsigned>(queries), static_cast<unsigned>(column_blocks),
                    static_cast<unsigned>(parts.count));
    cuda::choose_chunk<T>(vectors, [&](auto count) {
      cuda::launch(stream_,
                   {.grid = grid,
                    .block = dim3(cuda::kThreads),
                    .shared_bytes = static_cast<std::size_t>(head_size) * sizeof(float)},
                   cuda::attend_cached<T, count>, views, parts);
    });
    if (parts.count == 1) return;
    cuda::launch(stream_, {.grid = dim3(grid.x, grid.y), .block = dim3(cuda::kColumns)}, cuda::put_parts_together<T>,
                 views, parts);
  });
}

}  // namespace teratron
