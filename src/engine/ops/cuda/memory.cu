// Memory of the CUDA back end: copies between host and device, and fills.
#include <algorithm>
#include <bit>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/elements.h"
#include "ops/cuda/runtime/graph_capture.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kUploadBytes = std::int64_t{64} << 20;  // of normal values made on the host at a time

template <class T>
__global__ void __launch_bounds__(kThreads) fill_elements(T* to, double value, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    to[i] = narrowed<T>(value);
  }
}

__global__ void __launch_bounds__(kThreads)
    split_elements(Bf16* nearest, std::uint16_t* remainder, const float* from, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const SplitFloat halves = split_float(std::bit_cast<std::uint32_t>(from[i]));
    nearest[i] = halves.nearest;
    remainder[i] = halves.remainder;
  }
}

__global__ void __launch_bounds__(kThreads)
    join_elements(float* to, const Bf16* nearest, const std::uint16_t* remainder, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    to[i] = std::bit_cast<float>(joined_bits({.nearest = nearest[i], .remainder = remainder[i]}));
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::copy_out(void* to_host, const void* from, std::int64_t bytes) {
  cuda::check_not_capturing(stream_, "captured work copies nothing to the host");
  cuda::require(cudaMemcpyAsync(to_host, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
                "a copy to the host");
  stream_.wait();
}

void CudaBackend::copy_in(void* to, const void* from_host, std::int64_t bytes) {
  cuda::check_not_capturing(stream_, "captured work copies nothing from the host");
  if (bytes <= uploads_.kMost) return uploads_.copy(to, from_host, bytes);
  cuda::require(cudaMemcpyAsync(to, from_host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_),
                "a copy to the device");
  stream_.wait();
}

void CudaBackend::do_upload(const TensorRef& to, const void* from) { copy_in(to.data, from, to.bytes()); }

void CudaBackend::do_download(void* to, const TensorRef& from) { copy_out(to, from.data, from.bytes()); }

void CudaBackend::do_fill(const TensorRef& view, double value) {
  if (value == 0) {  // any dtype: zero is all bits zero in each
    return cuda::require(cudaMemsetAsync(view.data, 0, static_cast<std::size_t>(view.bytes()), stream_), "a fill");
  }
  visit_floating(view.dtype, [&]<class T>(ElementType<T>) {
    cuda::launch(stream_, cuda::shape_for(view.elements(), cuda::kThreads), cuda::fill_elements<T>, view.as<T>(), value,
                 view.elements());
  });
}

void CudaBackend::do_split_floats(const TensorRef& nearest, const TensorRef& remainder, const TensorRef& from) {
  cuda::launch(stream_, cuda::shape_for(from.elements(), cuda::kThreads), cuda::split_elements, nearest.as<Bf16>(),
               remainder.as<std::uint16_t>(), from.as<float>(), from.elements());
}

void CudaBackend::do_join_floats(const TensorRef& to, const TensorRef& nearest, const TensorRef& remainder) {
  cuda::launch(stream_, cuda::shape_for(to.elements(), cuda::kThreads), cuda::join_elements, to.as<float>(),
               nearest.as<Bf16>(), remainder.as<std::uint16_t>(), to.elements());
}

// On the host, so that a run starts from the bits it would start from there: a device's logarithms and cosines differ
// in the last place.
void CudaBackend::do_fill_normal(const TensorRef& view, const RandomStream& random, std::int64_t first_index,
                                 double stddev, std::int64_t row_stride) {
  const std::unique_ptr<Backend> host = make_cpu_backend();
  const std::int64_t columns = view.dim(1), row_bytes = columns * size_of(view.dtype);
  const std::int64_t rows_at_once = std::clamp<std::int64_t>(cuda::kUploadBytes / row_bytes, 1, view.dim(0));
  const Buffer buffer(*host, rows_at_once * row_bytes);
  for (std::int64_t row = 0; row < view.dim(0); row += rows_at_once) {
    const std::int64_t end = std::min(view.dim(0), row + rows_at_once);
    const TensorRef values = buffer.view(view.dtype, {end - row, columns});
    host->fill_normal(values, random, first_index + row * row_stride, stddev, row_stride);
    do_upload(view.slice(0, row, end), values.data);
  }
}

}  // namespace teratron
