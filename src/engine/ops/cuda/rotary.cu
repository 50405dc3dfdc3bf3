// Rotary positions: a thread turns a pair.
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/elements.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
struct Turn {
  T* x;
  const float* table;                // [positions, 2, pairs]
  const std::int32_t* position_ids;  // may be absent
  std::int64_t batch_stride, token_stride, head_stride;
  std::int64_t tokens, heads, pairs, count, first_position;
  bool halves;
  float sign;  // of the sines
};

template <class T>
__global__ void __launch_bounds__(kThreads) turn_pairs(Turn<T> all) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < all.count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t r = i % all.pairs, h = i / all.pairs % all.heads, row = i / all.pairs / all.heads;
    const std::int64_t b = row / all.tokens, t = row % all.tokens;
    const std::int64_t position = all.position_ids == nullptr ? all.first_position + t : all.position_ids[row];
    const float* const cosines = all.table + position * 2 * all.pairs;
    const float cosine = cosines[r], sine = all.sign * cosines[all.pairs + r];
    T* const head = all.x + b * all.batch_stride + t * all.token_stride + h * all.head_stride;
    T *const first = head + (all.halves ? r : 2 * r), *const second = head + (all.halves ? r + all.pairs : 2 * r + 1);
    const float a = widened(*first), c = widened(*second);
    *first = narrowed<T>(a * cosine - c * sine);
    *second = narrowed<T>(a * sine + c * cosine);
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_rotary(const Rotary& args) {
  const std::int64_t pairs = args.table.dim(2), count = args.x.elements() / args.x.dim(3) * pairs;
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    const cuda::Turn<T> all = {.x = args.x.as<T>(),
                               .table = args.table.as<float>(),
                               .position_ids = args.position_ids ? args.position_ids.as<std::int32_t>() : nullptr,
                               .batch_stride = args.x.stride(0),
                               .token_stride = args.x.stride(1),
                               .head_stride = args.x.stride(2),
                               .tokens = args.x.dim(1),
                               .heads = args.x.dim(2),
                               .pairs = pairs,
                               .count = count,
                               .first_position = args.first_position,
                               .halves = args.pairs == RotaryPairs::kHalves,
                               .sign = args.inverse ? -1.0F : 1.0F};
    cuda::launch(stream_, cuda::shape_for(count, cuda::kThreads), cuda::turn_pairs<T>, all);
  });
}

}  // namespace teratron
