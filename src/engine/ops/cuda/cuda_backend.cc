#include "ops/cuda/cuda_backend.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "ops/cuda/attention/attention_hopper.h"
#include "ops/cuda/runtime/graph_capture.h"

namespace teratron {
namespace {

constexpr int kOldest = 80;  // compute capability, of Ampere: the first with all that the kernels ask for (ptx.h)

// The device made current for the calling thread. EnvironmentError that says what is missing.
cudaDeviceProp use_device(int device) {
  int driver = 0, runtime = 0, count = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) {
    throw_environment_error(
        "no NVIDIA driver is installed, so there is no device for back end cuda; install one, or use --backend cpu");
  }
  if (driver / 1000 < runtime / 1000) {
    throw_environment_error(
        "the NVIDIA driver is for CUDA {}.{}, and this program needs {}.{}; update the driver, or use --backend cpu",
        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  }
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0) {
    cudaGetLastError();  // and forget it
    throw_environment_error("there is no NVIDIA device for back end cuda ({}); use --backend cpu",
                            count == 0 && status == cudaSuccess ? "none found" : cudaGetErrorString(status));
  }
  if (device >= count) {
    throw_environment_error("there are {} NVIDIA devices, and number {} is wanted (the first is 0)", count, device);
  }
  cuda::require(cudaSetDevice(device), "choosing it");
  cudaDeviceProp properties = {};
  cuda::require(cudaGetDeviceProperties(&properties, device), "its properties");
  if (10 * properties.major + properties.minor < kOldest) {
    throw_environment_error("{} has compute capability {}.{}, and 8.0 is the oldest that works; use --backend cpu",
                            properties.name, properties.major, properties.minor);
  }
  return properties;
}

}  // namespace

CudaBackend::CudaBackend(const CudaOptions& options)
    : compute_dtype_(options.compute_dtype),
      number_(options.device),
      tf32_(options.tf32),
      gemm_timing_(options.gemm_timing),
      graphs_(options.graphs),
      hopper_attention_(options.hopper_attention),
      device_(use_device(options.device)),
      gemm_(stream_,
            {.tf32 = tf32_, .timing = gemm_timing_, .timed_from = options.gemm_timed_from, .device = device_.name},
            &meter_) {
  if (compute_dtype_ == DType::kF64) throw_user_error("back end cuda computes in f32, bf16 or f16, not in f64");
  if (options.channels && cuda::nccl_is_available()) channels_ = cuda::make_nccl_channels();
  if (hopper_attention_ == KernelUse::kRequired) cuda::require_hopper(device_);
  if (!cuda::is_hopper(device_)) hopper_attention_ = KernelUse::kOff;
  start_cudnn_attention(options.cudnn_attention);
}

void CudaBackend::start_cudnn_attention(KernelUse use) {
  const bool is_required = use == KernelUse::kRequired;
  if (!is_required && (use == KernelUse::kOff || compute_dtype_ == DType::kF32)) return;
  try {
    cudnn_attention_.emplace(stream_, device_, is_required);
  } catch (const EnvironmentError&) {
    if (is_required) throw;
    cudaGetLastError();  // and forget it
  }
}

std::string CudaBackend::settings() const {
  std::vector<std::string_view> unusual;
  if (tf32_) unusual.emplace_back("tf32");
  if (!gemm_timing_) unusual.emplace_back("gemm timing off");
  if (hopper_attention_ != KernelUse::kOff) unusual.emplace_back("hopper attention");
  if (cudnn_attention_) unusual.emplace_back("cudnn attention");
  return fmt::format("{}", fmt::join(unusual, ", "));
}

CommunicationStream* CudaBackend::add_communication_stream() {
  return &communication_streams_.emplace_back(stream_, number_, channels_, &meter_);
}

void CudaBackend::wait() {
  stream_.wait();
  timestamps_.anchor();
}

void CudaBackend::do_replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) {
  if (!graphs_) return work();
  if (graph == nullptr) graph = std::make_unique<cuda::CapturedGraph>(stream_, &meter_);
  dynamic_cast<cuda::CapturedGraph&>(*graph).replay(scratch_.memory(), work);
}

void* CudaBackend::allocate(std::int64_t bytes) {
  cuda::check_not_capturing(stream_, "captured work allocates no memory");
  void* const memory = cuda::take_memory(std::max<std::int64_t>(bytes, 1));
  allocated_[memory] = bytes;
  meter_.add(bytes);
  return memory;
}

std::string CudaBackend::memory_name() const {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(device_.uuid.bytes);
  return fmt::format("GPU-{:02x}", fmt::join(bytes, bytes + sizeof(device_.uuid.bytes), ""));
}

std::int64_t CudaBackend::bytes_left() { return cuda::free_memory(); }

// This rank's stream waits for what other ranks' devices do with the memory, so its end is theirs too.
void CudaBackend::release(void* memory) noexcept {
  cudaStreamSynchronize(stream_);
  cudaFree(memory);
  const auto entry = allocated_.find(memory);
  meter_.add(-entry->second);
  allocated_.erase(entry);
}

int cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace teratron
