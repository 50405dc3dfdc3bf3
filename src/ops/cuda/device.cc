#include "ops/cuda/device.h"

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

Scratch::~Scratch() { cudaFree(memory_); }

void* Scratch::bytes(std::int64_t count) {
  if (count > bytes_) {
    cudaFree(memory_);
    memory_ = nullptr;
    bytes_ = 0;
    require(cudaMalloc(&memory_, static_cast<std::size_t>(count)), "scratch memory");
    bytes_ = count;
  }
  return memory_;
}

}  // namespace teratron::cuda
