#include "ops/cuda/runtime/device.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "ops/cuda/runtime/graph_capture.h"

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

void allow_shared_memory(const void* kernel, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, std::size_t> allowed;  // by device and kernel
  int device = 0;
  require(cudaGetDevice(&device), "the current device");
  const std::lock_guard lock(mutex);
  std::size_t& most = allowed[{device, kernel}];
  if (bytes <= most) return;
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          "shared memory for a kernel");
  most = bytes;
}

namespace {

// Whether the current device has them. Some virtual GPUs do not.
bool has_memory_pools() {
  int device = 0, has = 0;
  require(cudaGetDevice(&device), "the current device");
  require(cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device), "whether it has memory pools");
  return has != 0;
}

}  // namespace

void* take_memory(std::int64_t bytes, std::optional<cudaStream_t> stream) {
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const cudaError_t status =
      stream && has_memory_pools() ? cudaMallocAsync(&memory, size, *stream) : cudaMalloc(&memory, size);
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

std::int64_t free_memory() {
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "its memory");
  return static_cast<std::int64_t>(free);
}

void give_back_memory(void* memory, cudaStream_t stream) noexcept {
  if (cudaFreeAsync(memory, stream) == cudaSuccess) return;
  cudaGetLastError();  // and forget it: there are no pools
  cudaStreamSynchronize(stream);
  cudaFree(memory);
}

Scratch::~Scratch() { free_memory(); }

void Scratch::free_memory() {
  if (memory_ != nullptr) give_back_memory(memory_, stream_);
  if (meter_ != nullptr) meter_->add(-bytes_);
  memory_ = nullptr;
  bytes_ = 0;
}

void* Scratch::bytes(std::int64_t count) {
  if (count <= bytes_) return memory_;
  check_not_capturing(stream_, "captured work takes no more scratch memory");
  free_memory();
  memory_ = take_memory(count, stream_);
  bytes_ = count;
  if (meter_ != nullptr) meter_->add(bytes_);
  return memory_;
}

Uploads::~Uploads() {
  if (pinned_ == nullptr) return;
  cudaStreamSynchronize(stream_);
  cudaFreeHost(pinned_);
}

void Uploads::copy(void* to, const void* from, std::int64_t bytes) {
  if (pinned_ == nullptr) {
    void* memory = nullptr;
    require(cudaMallocHost(&memory, kSlots * static_cast<std::size_t>(kMost)), "pinned memory of the host");
    pinned_ = static_cast<std::byte*>(memory);
  }
  const std::size_t slot = next_++ % kSlots;
  std::byte* const staged = pinned_ + slot * static_cast<std::size_t>(kMost);
  done_[slot].wait();  // for the copy that lay here; at once where there was none
  std::memcpy(staged, from, static_cast<std::size_t>(bytes));
  require(cudaMemcpyAsync(to, staged, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_),
          "a copy to the device");
  done_[slot].record(stream_);
}

}  // namespace teratron::cuda
