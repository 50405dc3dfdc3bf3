// Attention of a few queries on a key/value cache. There are too few of them for tiles, and all time goes into reading
// keys and values once: a block takes one query of one head, its groups of eight lanes take keys in turn, each with a
// running softmax of its own, and at the end the groups are put together, always in the same order.
#include <limits>

#include "ops/cuda/attention/attention.h"
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256, kLanes = 8, kGroups = kThreads / kLanes;
constexpr int kColumns = 128, kLaneColumns = kColumns / kLanes;  // of the output, that a block and a lane make

template <class T>
struct CachedViews {
  HeadsView<T> out, keys, values;
  HeadsView<const T> q, k, v;
  const std::int32_t* length;
  int heads, tokens, head_size;
  float scale_2;  // of scores in the domain of exp2
};

// Of the keys that a group has seen.
struct GroupSoftmax {
  float max = -std::numeric_limits<float>::infinity(), sum = 0, out[kLaneColumns] = {};

  // The weight of a key with this score, after what is there was brought to the new maximum.
  __device__ float weight_of(float score) {
    const float larger = max > score ? max : score, correction = fast_exp2(max - larger);
    const float weight = fast_exp2(score - larger);
    max = larger;
    sum = sum * correction + weight;
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) out[c] *= correction;
    return weight;
  }
};

struct GroupMemory {
  float max[kGroups], sum[kGroups], out[kGroups][kColumns];
};

// The block's part of the cached rows that become k and v.
template <class T>
__device__ void append(const CachedViews<T>& views, int b, int h, int token, int length) {
  const T *const k = views.k.head(b, h)(token), *const v = views.v.head(b, h)(token);
  T *const key = views.keys.head(b, h)(length + token), *const value = views.values.head(b, h)(length + token);
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

// kCount: elements that a lane takes at once. Tokens that came with this call are read where they came from, so that
// no block waits for those that write them to the cache.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) attend_cached(CachedViews<T> views) {
  __shared__ GroupMemory memory;
  float* const query = dynamic_shared<float>();  // [head_size]
  const int token = static_cast<int>(blockIdx.x) % views.tokens, head = static_cast<int>(blockIdx.x) / views.tokens;
  const int b = head / views.heads, h = head % views.heads, length = *views.length, seen = length + token + 1;
  const int thread = static_cast<int>(threadIdx.x), group = thread / kLanes, lane = thread % kLanes;
  const int column = static_cast<int>(blockIdx.y) * kColumns;
  const T* const q = views.q.head(b, h)(token);
  for (int c = thread; c < views.head_size; c += kThreads) query[c] = widened(q[c]) * views.scale_2;
  if (column == 0) append(views, b, h, token, length);
  __syncthreads();

  const auto row_of = [&](const HeadsView<T>& cache, const HeadsView<const T>& own, int key) {
    return key < length ? cache.head(b, h)(key) : own.head(b, h)(key - length);
  };
  GroupSoftmax state;
  for (int first = 0; first < seen; first += kGroups) {
    const int key = first + group;
    float score = 0;
    if (key < seen) {
      const T* const row = row_of(views.keys, views.k, key);
#pragma unroll 2
      for (int c = lane * kCount; c < views.head_size; c += kLanes * kCount) {
        const auto chunk = load_chunk<kCount>(row + c);
        for (int e = 0; e < kCount; ++e) score += query[c + e] * chunk[e];
      }
    }
    score = over_group(score);
    if (key >= seen) continue;
    const float weight = state.weight_of(score);
    const T* const row = row_of(views.values, views.v, key) + column;
#pragma unroll
    for (int i = 0; i < kLaneColumns / kCount; ++i) {
      const int c = (i * kLanes + lane) * kCount;
      if (column + c >= views.head_size) continue;
      const auto chunk = load_chunk<kCount>(row + c);
      for (int e = 0; e < kCount; ++e) state.out[i * kCount + e] += weight * chunk[e];
    }
  }

  if (lane == 0) {
    memory.max[group] = state.max;
    memory.sum[group] = state.sum;
  }
#pragma unroll
  for (int i = 0; i < kLaneColumns; ++i) {
    memory.out[group][(i / kCount * kLanes + lane) * kCount + i % kCount] = state.out[i];
  }
  __syncthreads();
  if (thread >= kColumns || column + thread >= views.head_size) return;
  float max = memory.max[0], sum = 0, out = 0;  // every query sees the first group's first key
  for (int g = 1; g < kGroups; ++g) max = memory.max[g] > max ? memory.max[g] : max;
  for (int g = 0; g < kGroups; ++g) {
    const float factor = fast_exp2(memory.max[g] - max);
    sum += factor * memory.sum[g];
    out += factor * memory.out[g][thread];
  }
  views.out.head(b, h)(token)[column + thread] = narrowed<T>(out / sum);
}

template <class T>
CachedViews<T> cached_views_of(const CachedAttention& args) {
  return {.out = heads_of<T>(args.out),
          .keys = heads_of<T>(args.keys),
          .values = heads_of<T>(args.values),
          .q = heads_of<const T>(args.q),
          .k = heads_of<const T>(args.k),
          .v = heads_of<const T>(args.v),
          .length = args.length.as<std::int32_t>(),
          .heads = static_cast<int>(args.q.dim(2)),
          .tokens = static_cast<int>(args.q.dim(1)),
          .head_size = static_cast<int>(args.q.dim(3)),
          .scale_2 = static_cast<float>(args.scale) * kLog2E};
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_cached_attention(const CachedAttention& args) {
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    const std::int64_t head_size = args.q.dim(3), queries = args.q.elements() / head_size;
    bool vectors = head_size % cuda::Vector<T>::kSize == 0;
    for (const TensorRef& view : {args.k, args.v, args.keys, args.values}) {
      vectors = vectors && cuda::has_aligned_rows<T>(view);
    }
    const cuda::LaunchShape shape = {
        .grid = dim3(static_cast<unsigned>(queries),
                     static_cast<unsigned>((head_size + cuda::kColumns - 1) / cuda::kColumns)),
        .block = dim3(cuda::kThreads),
        .shared_bytes = static_cast<std::size_t>(head_size) * sizeof(float)};
    cuda::choose_chunk<T>(vectors, [&](auto count) {
      cuda::launch(stream_, shape, cuda::attend_cached<T, count>, cuda::cached_views_of<T>(args));
    });
  });
}

}  // namespace teratron
