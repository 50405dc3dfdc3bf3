// Host-side wrappers of the CUDA runtime: errors as exceptions, launches, streams, events, scratch memory.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace teratron::cuda {

// EnvironmentError with `what` and CUDA's message unless status is cudaSuccess.
void require(cudaError_t status, std::string_view what);

constexpr int kWarp = 32;
constexpr std::int64_t kMostBlocks = 0x7fffffff;  // of a grid, along x
// Bytes of dynamic shared memory that need no permission. The device's limit of 48 KiB counts a kernel's static shared
// memory too; the rest is left for that.
constexpr std::size_t kUsualShared = 32 << 10;

// Lets launches of a kernel on the current device have that many bytes of dynamic shared memory. The limit is shared by
// threads and never falls.
void allow_shared_memory(const void* kernel, std::size_t bytes);

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  // dynamic
};

// Arguments are converted to the kernel's parameter types. EnvironmentError if the launch fails.
template <class... Parameters>
void launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  if (shape.shared_bytes > kUsualShared) {
    allow_shared_memory(reinterpret_cast<const void*>(kernel), shape.shared_bytes);
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

// If there is too little memory, an EnvironmentError with the free bytes and the flags that help. With a stream, memory
// for the work that is queued on it from now on (cudaMallocAsync, where the device has pools), else for all
// (cudaMalloc).
void* take_memory(std::int64_t bytes, std::optional<cudaStream_t> stream = std::nullopt);
// Gives back what was taken with that stream, when the work that is queued on it now is done.
void give_back_memory(void* memory, cudaStream_t stream) noexcept;

std::int64_t free_memory();  // of the current device, in bytes

// Memory for values that one operation passes between its kernels. Operations of one stream run in order and share it.
// It grows in the stream's order: neither the host nor other streams wait, which could have to wait for this one
// (NCCL).
class Scratch {
 public:
  // The meter counts it; null: nothing does.
  explicit Scratch(cudaStream_t stream, MemoryMeter* meter = nullptr) : stream_(stream), meter_(meter) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  // Undefined contents, aligned to 256 bytes, valid for what is queued on the stream until the next call.
  void* bytes(std::int64_t count);
  const void* memory() const { return memory_; }
  template <class T>
  T* of(std::int64_t count) {
    return static_cast<T*>(bytes(count * static_cast<std::int64_t>(sizeof(T))));
  }

 private:
  void free_memory();

  cudaStream_t stream_;
  MemoryMeter* meter_;
  void* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Small copies to the device (token ids, targets) for which the host does not wait: the values are copied to pinned
// memory, from which the device reads them in stream order.
class Uploads {
 public:
  static constexpr std::int64_t kMost = std::int64_t{256} << 10;  // bytes of one copy

  explicit Uploads(cudaStream_t stream) : stream_(stream) {}
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;
  ~Uploads();

  // In stream order. `from` may change when it returns.
  void copy(void* to, const void* from, std::int64_t bytes);

 private:
  // Copies in flight at most: a micro-batch makes up to six, and the host runs ahead by several.
  static constexpr std::size_t kSlots = 32;

  const cudaStream_t stream_;
  std::byte* pinned_ = nullptr;  // kSlots x kMost bytes, allocated by the first copy
  std::array<TimedEvent, kSlots> done_;
  std::size_t next_ = 0;
};

}  // namespace teratron::cuda
