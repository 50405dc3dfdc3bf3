// Stands in for NVIDIA's header of this name, so that the CUDA back end's sources build as plain C++ and their kernels
// run, thread by thread, on a machine without a GPU (emulator.h). Only what the back end uses is here; declarations are
// those of the CUDA runtime API's documentation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>

#include "emulated_gpu/emulator.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define CUDART_VERSION 13000
#define __launch_bounds__(...)
#define __shared__ static thread_local  // blocks run one after another on their host thread

using teratron::emulated::blockDim;
using teratron::emulated::blockIdx;
using teratron::emulated::gridDim;
using teratron::emulated::threadIdx;
using dim3 = teratron::emulated::Dim3;

inline void __syncthreads() { teratron::emulated::wait_for_block(); }
// Stand-in of a kernel for another device, whose own instructions run by their PTX alone.
inline void __trap() { teratron::emulated::trap(); }
inline void __syncwarp() { teratron::emulated::wait_for_warp(); }
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return teratron::emulated::value_of_lane(value, lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return teratron::emulated::value_of_lane(value, teratron::emulated::lane() ^ mask);
}
template <class T>
T __shfl_down_sync(unsigned, T value, int delta) {
  const int from = teratron::emulated::lane() + delta;
  return teratron::emulated::value_of_lane(value, from < 32 ? from : teratron::emulated::lane());
}

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900
};
enum cudaDeviceAttr { cudaDevAttrMemoryPoolsSupported = 115 };
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
using cudaEvent_t = struct EmulatedEvent*;
using cudaStream_t = struct EmulatedStream*;

struct cudaDeviceProp {
  char name[256] = "emulated";
  struct {
    char bytes[16] = {};
  } uuid;
  int major = 9, minor = 0, multiProcessorCount = 2;
  std::size_t totalGlobalMem = std::size_t{8} << 30;
};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace teratron::emulated {

// Events measure a clock of the thread that does the work, which only work moves, by the same amount each time:
// a product by its algorithm's (cublas_lt.cc), each other launch, copy and fill by one microsecond.
void pass_time(double microseconds);
constexpr double kLaunchMicroseconds = 1;

// Does the work on the stream (streams.h) or, while this thread captures its stream, keeps it with the arguments of
// now.
cudaError_t queue(cudaStream_t stream, std::function<cudaError_t()> work);
bool is_capturing();

// Whether a kernel may have that much dynamic shared memory: what it was allowed (cudaFuncSetAttribute), or what all
// may have, 48 KiB with its static shared memory. PTX says how much that is; a C++ compiler does not, and 1 KiB is
// thought.
bool may_use(const void* kernel, std::size_t shared_bytes);

}  // namespace teratron::emulated

namespace teratron::emulated {

// As C++, or by its PTX where that is in use (ptx/launch.h).
template <class... Parameters>
void run_kernel(const void* kernel, const cudaLaunchConfig_t& shape, const std::function<void()>& thread,
                const std::tuple<Parameters...>& values) {
  if (!runs_ptx()) return run_grid(shape.gridDim, shape.blockDim, shape.dynamicSmemBytes, thread);
  const auto run = [&](const Parameters&... value) {
    const std::array<KernelArgument, sizeof...(Parameters)> list = {
        {{&value, sizeof(Parameters), alignof(Parameters)}...}};
    run_by_ptx(kernel, {shape.gridDim, shape.blockDim, shape.dynamicSmemBytes}, list);
  };
  std::apply(run, values);
}

}  // namespace teratron::emulated

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  if (!teratron::emulated::may_use(reinterpret_cast<const void*>(kernel), config->dynamicSmemBytes)) {
    return cudaErrorInvalidValue;
  }
  const auto run = [shape = *config, kernel, values = std::tuple<Parameters...>(arguments...)] {
    const auto thread = [&] { std::apply(kernel, values); };
    teratron::emulated::run_kernel(reinterpret_cast<const void*>(kernel), shape, thread, values);
    teratron::emulated::pass_time(teratron::emulated::kLaunchMicroseconds);
    return cudaSuccess;
  };
  return teratron::emulated::queue(config->stream, run);
}

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
// Those that the fake NCCL calls, a library of its own.
extern "C" {
#pragma GCC visibility push(default)
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* argument);
#pragma GCC visibility pop
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream);
cudaError_t cudaMallocHost(void** memory, std::size_t bytes);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest);
cudaError_t cudaDeviceCanAccessPeer(int* can, int from, int to);
cudaError_t cudaDeviceEnablePeerAccess(int device, unsigned flags);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);

enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1 };
using cudaGraph_t = struct EmulatedGraph*;
using cudaGraphExec_t = struct EmulatedGraph*;
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
constexpr unsigned long long cudaEnableDefault = 0;
// Knows cuTensorMapEncodeTiled (cuda.h).
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* found);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
