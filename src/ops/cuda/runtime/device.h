// Host-side wrappers of the CUDA runtime: errors as exceptions, launches, streams, events, scratch memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace teratron::cuda {

// EnvironmentError with `what` and CUDA's message unless status is cudaSuccess.
void require(cudaError_t status, std::string_view what);

constexpr int kWarp = 32;
constexpr std::int64_t kMostBlocks = 0x7fffffff;  // of a grid, along x
constexpr std::size_t kUsualShared = 48 << 10;    // bytes of shared memory that need no permission

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  // dynamic
};

// Arguments are converted to the kernel's parameter types. EnvironmentError if the launch fails.
template <class... Parameters>
void launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  if (shape.shared_bytes > kUsualShared) {
    require(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes)),
        "shared memory for a kernel");
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  require(cudaLaunchKernelEx(&config, kernel, arguments...), "the launch of a kernel");
}

// Blocks of `threads` threads, one thread for each of `count` items, up to the largest grid; kernels loop with that
// stride.
inline LaunchShape shape_for(std::int64_t count, int threads = 256) {
  const std::int64_t blocks = (count + threads - 1) / threads;
  return {.grid = dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)),
          .block = dim3(static_cast<unsigned>(threads))};
}

class Stream {
 public:
  enum class Priority { kUsual, kHigh };
  explicit Stream(Priority priority = Priority::kUsual);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  operator cudaStream_t() const { return stream_; }  // NOLINT: it is one
  void wait() const;                                 // for all work queued on it

 private:
  cudaStream_t stream_ = nullptr;
};

class TimedEvent {
 public:
  TimedEvent() { require(cudaEventCreate(&event_), "an event"); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) const { require(cudaEventRecord(event_, stream), "an event"); }
  void wait() const { require(cudaEventSynchronize(event_), "work before an event"); }  // at once if never recorded
  double microseconds_since(const TimedEvent& start) const {  // both are reached; to half a microsecond
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, start.event_, event_), "the time between two events");
    return 1000.0 * milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Bytes taken of the device through one back end.
struct MemoryMeter {
  std::int64_t taken = 0, most = 0;
  void add(std::int64_t bytes) {
    taken += bytes;
    most = taken > most ? taken : most;
  }
};

// cudaMalloc. If there is too little memory, an EnvironmentError with the free bytes and the flags that help.
void* take_memory(std::int64_t bytes);

// Memory for values that one operation passes between its kernels. Operations of one stream run in order and share it.
class Scratch {
 public:
  explicit Scratch(MemoryMeter* meter = nullptr) : meter_(meter) {}  // the meter counts it; null: nothing does
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  // Undefined contents, aligned to 256 bytes, valid until the next call; grows by allocating, after
  // waiting for the device.
  void* bytes(std::int64_t count);
  const void* memory() const { return memory_; }
  template <class T>
  T* of(std::int64_t count) {
    return static_cast<T*>(bytes(count * static_cast<std::int64_t>(sizeof(T))));
  }

 private:
  MemoryMeter* meter_;
  void* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace teratron::cuda
