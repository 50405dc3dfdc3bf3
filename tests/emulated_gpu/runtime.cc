// The host side of the emulated runtime: device memory is the host's. Streams and events are in streams.cc.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "cuda_runtime.h"
#include "emulated_gpu/ptx/launch.h"
#include "emulated_gpu/streams.h"

using teratron::emulated::is_capturing;
using teratron::emulated::queue;
using teratron::emulated::run_on;
using teratron::emulated::streams_are_late;
using teratron::emulated::wait_for_device;

struct EmulatedGraph {
  std::vector<std::function<cudaError_t()>> work;
  bool is_executable = false;
};

namespace {

thread_local std::optional<EmulatedGraph> capture;  // of this thread's stream
std::atomic<std::int64_t> calls_of_host = 0;

constexpr std::size_t kUsualShared = 48 << 10, kMostShared = 227 << 10;  // of a block on Hopper
constexpr std::size_t kUsualStatic = 1 << 10;                            // a guess
constexpr std::size_t kGraphBytes = 64 << 10;                            // of the device, for an executable graph

struct Device {
  std::mutex mutex;
  std::map<const void*, std::size_t> allowed;    // dynamic shared memory, by kernel
  std::map<const void*, std::size_t> allocated;  // bytes, by address
  std::size_t memory = cudaDeviceProp{}.totalGlobalMem, in_use = 0;
  bool has_pools = true;         // of memory, for cudaMallocAsync()
  std::set<const void*> loaded;  // kernels that were launched
};

Device& device() {
  static auto* const one = new Device;  // threads may still use it while the program ends
  return *one;
}

bool take(std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  if (device().in_use + bytes > device().memory) return false;
  device().in_use += bytes;
  return true;
}

bool kernels_are_loaded_at_the_start() {
  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  return loading != nullptr && std::string_view(loading) == "EAGER";
}

// A real driver loads a kernel when it is first launched, and may wait for all that the device does before it goes on.
void load(const void* kernel) {
  if (!streams_are_late() || kernels_are_loaded_at_the_start()) return;
  {
    const std::lock_guard lock(device().mutex);
    if (!device().loaded.insert(kernel).second) return;
  }
  wait_for_device();
}

// NaN of every floating type.
void* new_memory(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  void* const memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  std::memset(memory, 0xff, bytes);
  return memory;
}

}  // namespace

namespace teratron::emulated {

bool is_capturing() { return capture.has_value(); }

cudaError_t queue(cudaStream_t stream, std::function<cudaError_t()> work) {
  if (!is_capturing()) {
    ++calls_of_host;
    return run_on(stream, std::move(work));
  }
  capture->work.push_back(std::move(work));
  return cudaSuccess;
}

bool may_use(const void* kernel, std::size_t shared_bytes) {
  load(kernel);
  const std::size_t of_kernel = runs_ptx() ? ptx::static_shared_of(kernel) : kUsualStatic;
  if (of_kernel + shared_bytes <= kUsualShared) return true;
  const std::lock_guard lock(device().mutex);
  const auto found = device().allowed.find(kernel);
  return found != device().allowed.end() && shared_bytes <= found->second;
}

// By the environment: the folder of the PTX, and whether kernels that no test ran are named at the end.
bool runs_ptx() {
  [[maybe_unused]] static const bool asked = [] {
    const char* const folder = std::getenv("TERATRON_PTX");
    if (folder == nullptr) return false;
    ptx::use_folder(folder);
    const auto report = [] {
      for (const std::string& kernel : ptx::kernels_without_a_run())
        std::fprintf(stderr, "never ran: %s\n", kernel.c_str());
    };
    if (std::getenv("TERATRON_PTX_REPORT") != nullptr) std::atexit(report);
    return true;
  }();
  return ptx::is_in_use();
}

void run_by_ptx(const void* kernel, const LaunchedShape& shape, std::span<const KernelArgument> arguments) {
  std::vector<ptx::Allocation> allocations;
  {
    const std::lock_guard lock(device().mutex);
    for (const auto& [memory, bytes] : device().allocated) {
      const auto begin = reinterpret_cast<std::uint64_t>(memory);
      allocations.push_back({begin, begin + bytes});
    }
  }
  ptx::run(kernel, shape, arguments, std::move(allocations));
}

std::int64_t queued_calls() { return calls_of_host; }

void set_device_memory(std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  device().memory = bytes;
}

void set_memory_pools(bool has_them) { device().has_pools = has_them; }

std::size_t device_memory_in_use() {
  const std::lock_guard lock(device().mutex);
  return device().in_use;
}

}  // namespace teratron::emulated

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  capture.emplace();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  if (!is_capturing()) return cudaErrorInvalidValue;
  *graph = new EmulatedGraph(std::move(*capture));
  capture.reset();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = is_capturing() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (!take(kGraphBytes)) return cudaErrorMemoryAllocation;
  *executable = new EmulatedGraph{.work = graph->work, .is_executable = true};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ++calls_of_host;
  return run_on(stream, [executable] {
    for (const auto& work : executable->work) {
      if (const cudaError_t status = work(); status != cudaSuccess) return status;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph->is_executable) {
    const std::lock_guard lock(device().mutex);
    device().in_use -= kGraphBytes;
  }
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return cudaGraphDestroy(executable); }

const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "an emulated error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  if (streams_are_late()) {  // no other process's
    const auto process = static_cast<std::uint32_t>(::getpid());
    std::memcpy(properties->uuid.bytes, &process, sizeof(process));
  }
  return cudaSetDevice(device);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = device().has_pools ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(device().mutex);
  *total = device().memory;
  *free = device().memory - std::min(device().memory, device().in_use);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  if (!take(bytes)) return cudaErrorMemoryAllocation;
  *memory = new_memory(bytes);
  const std::lock_guard lock(device().mutex);
  device().allocated[*memory] = bytes;
  return cudaSuccess;
}

namespace {

cudaError_t give_back(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const std::lock_guard lock(device().mutex);
  const auto found = device().allocated.find(memory);
  if (found == device().allocated.end()) return cudaErrorInvalidValue;
  device().in_use -= found->second;
  device().allocated.erase(found);
  std::free(memory);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaFree(void* memory) {
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  wait_for_device();
  return give_back(memory);
}

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return device().has_pools ? cudaMalloc(memory, bytes) : cudaErrorNotSupported;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  if (!device().has_pools) return cudaErrorNotSupported;
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  return run_on(stream, [memory] { return give_back(memory); });
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  *memory = new_memory(bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  if (is_capturing()) return cudaErrorStreamCaptureUnsupported;
  wait_for_device();
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  if (value < 0 || static_cast<std::size_t>(value) > kMostShared) return cudaErrorInvalidValue;
  const std::lock_guard lock(device().mutex);
  device().allowed[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return queue(stream, [=] {
    std::memmove(to, from, bytes);
    teratron::emulated::pass_time(teratron::emulated::kLaunchMicroseconds);
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return queue(stream, [=] {
    std::memset(memory, value, bytes);
    teratron::emulated::pass_time(teratron::emulated::kLaunchMicroseconds);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = *highest = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorInvalidValue; }
