// Copies and conversions between views of any strides.
#include "ops/cuda/copy/copy_plan.h"
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = CopyPlan::kThreads;
constexpr std::int64_t kMostElements = 0x7fffffff;  // of a launch

// Rounds where To is narrower: double to a 16-bit type by way of a float that rounds the same.
template <class To, class From>
__device__ Wide<To> wide_value(From value) {
  if constexpr (std::is_same_v<From, double> && sizeof(To) == 2) {
    return narrowed_to_odd(value);
  } else {
    return static_cast<Wide<To>>(widened(value));
  }
}

template <int kCount, class To, class From>
__device__ void store_converted(To* to, const Chunk<From, kCount>& chunk) {
  if constexpr (std::is_same_v<To, From>) {
    store_chunk<kCount>(to, chunk);
  } else {
    Wide<To> values[kCount];
    for (int e = 0; e < kCount; ++e) values[e] = wide_value<To>(chunk.stored(e));
    store_chunk<kCount>(to, values);
  }
}

template <int kCount, class To, class From>
__global__ void __launch_bounds__(kThreads) copy_pieces(To* to, const From* from, CopyPlan plan) {
  const std::uint32_t slots = static_cast<std::uint32_t>(kThreads) >> plan.lane_bits;
  std::uint32_t piece = blockIdx.x * slots + (threadIdx.x >> plan.lane_bits);
  if (piece >= plan.pieces) return;
  std::uint32_t first_index = 0;  // of the piece in its row
#pragma unroll
  for (int axis = 0; axis < kMaxRank; ++axis) {
    if (axis >= plan.axes) break;
    const std::uint32_t next = plan.sizes[axis].quotient(piece), index = piece - next * plan.sizes[axis].value();
    to += index * plan.to_strides[axis];
    from += index * plan.from_strides[axis];
    if (axis == 0) first_index = index;
    piece = next;
  }
  const std::int64_t left = plan.row_chunks - first_index * plan.piece_chunks();
  const int lane = static_cast<int>(threadIdx.x) & (plan.lanes - 1);
  Chunk<From, kCount> chunks[CopyPlan::kChunks];
#pragma unroll
  for (int i = 0; i < CopyPlan::kChunks; ++i) {
    const int c = i * plan.lanes + lane;
    if (c < left) chunks[i] = load_chunk<kCount>(from + c * plan.from_step);
  }
#pragma unroll
  for (int i = 0; i < CopyPlan::kChunks; ++i) {
    const int c = i * plan.lanes + lane;
    if (c < left) store_converted<kCount>(to + c * plan.to_step, chunks[i]);
  }
}

template <class To, class From>
void copy_views(cudaStream_t stream, const CopyViews& views) {
  // 16 bytes of the smaller type.
  using Smaller = std::conditional_t<(sizeof(To) < sizeof(From)), To, From>;
  for (const CopyViews& part : parts_of(collapsed(views), kMostElements)) {
    choose_chunk<Smaller>(takes_chunks(part, Vector<Smaller>::kSize), [&](auto count) {
      const CopyPlan plan(part, count);
      launch(stream, shape_for(std::int64_t{plan.pieces} * plan.lanes, kThreads), copy_pieces<count, To, From>,
             part.to.as<To>(), part.from.as<const From>(), plan);
    });
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_copy(const TensorRef& to, const TensorRef& from) {
  if (to.dtype != from.dtype) {
    return visit_floating(to.dtype, [&]<class To>(ElementType<To>) {
      visit_floating(from.dtype, [&]<class From>(ElementType<From>) {
        if constexpr (!std::is_same_v<To, From>) cuda::copy_views<To, From>(stream_, {to, from});
      });
    });
  }
  if (to.is_contiguous() && from.is_contiguous()) {
    return cuda::require(
        cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(to.bytes()), cudaMemcpyDeviceToDevice, stream_),
        "a copy");
  }
  switch (size_of(to.dtype)) {  // of one type: bytes of its size
    case 8: return cuda::copy_views<std::uint64_t, std::uint64_t>(stream_, {to, from});
    case 4: return cuda::copy_views<std::uint32_t, std::uint32_t>(stream_, {to, from});
    case 2: return cuda::copy_views<std::uint16_t, std::uint16_t>(stream_, {to, from});
    default: return cuda::copy_views<std::uint8_t, std::uint8_t>(stream_, {to, from});
  }
}

}  // namespace teratron
