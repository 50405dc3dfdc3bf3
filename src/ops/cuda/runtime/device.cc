#include "ops/cuda/runtime/device.h"

#include "base/error.h"

namespace teratron::cuda {

void require(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  throw_environment_error("the NVIDIA device failed: {}: {}", what, cudaGetErrorString(status));
}

Stream::Stream(Priority priority) {
  int lowest = 0, highest = 0;
  require(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "the priorities of streams");
  const int wanted = priority == Priority::kHigh ? highest : lowest;
  require(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, wanted), "a stream");
}

Stream::~Stream() { cudaStreamDestroy(stream_); }

void Stream::wait() const { require(cudaStreamSynchronize(stream_), "work on a stream"); }

void* take_memory(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // and forget it
    std::size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "its memory");
    throw_environment_error(
        "the NVIDIA device has {:.2f} GiB of memory free of {:.2f}, and {:.2f} are needed at once; use a smaller "
        "--micro-batch-size, --recompute-granularity, --use-distributed-optimizer, or more devices",
        static_cast<double>(free) / 0x1p30, static_cast<double>(total) / 0x1p30, static_cast<double>(bytes) / 0x1p30);
  }
  require(status, "memory");
  return memory;
}

Scratch::~Scratch() {
  cudaFree(memory_);
  if (meter_ != nullptr) meter_->add(-bytes_);
}

void* Scratch::bytes(std::int64_t count) {
  if (count <= bytes_) return memory_;
  if (memory_ != nullptr) {
    require(cudaDeviceSynchronize(), "waiting for the device");
    cudaFree(memory_);
  }
  memory_ = nullptr;
  if (meter_ != nullptr) meter_->add(-bytes_);
  bytes_ = 0;
  memory_ = take_memory(count);
  bytes_ = count;
  if (meter_ != nullptr) meter_->add(bytes_);
  return memory_;
}

}  // namespace teratron::cuda
