// The back end for NVIDIA GPUs. A family of operations has a file or folder. Calls return when their kernels are queued
// on the back end's stream; only large uploads, download() and sum_of_squares() wait for the device. The order of every
// sum depends on the shapes alone, so results repeat bit by bit.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>

#include "ops/backend.h"
#include "ops/cuda/cudnn/cudnn_attention.h"
#include "ops/cuda/exchange/communication.h"
#include "ops/cuda/linear/gemm.h"
#include "ops/cuda/runtime/device.h"
#include "ops/cuda/runtime/profiling.h"

namespace teratron {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options);

  std::string_view name() const override { return "cuda"; }
  DType compute_dtype() const override { return compute_dtype_; }
  std::string processor() const override { return device_.name; }
  std::string settings() const override;
  void wait() override;
  bool captures_graphs() const override { return graphs_; }
  bool has_frozen_linear() const override { return false; }
  void reserve_scratch(std::int64_t bytes) override { scratch_.bytes(bytes); }
  std::shared_ptr<const Timestamp> timestamp() override { return timestamps_.record(); }
  void begin_range(std::string_view name) override { cuda::begin_range(name); }
  void end_range() noexcept override { cuda::end_range(); }
  void* allocate(std::int64_t bytes) override;
  void release(void* memory) noexcept override;
  bool is_host_memory() const override { return false; }
  std::string memory_name() const override;
  std::int64_t taken_bytes() const override { return meter_.taken; }
  std::int64_t peak_bytes() const override { return meter_.most; }
  std::int64_t bytes_left() override;
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override;
  void copy_in(void* to, const void* from_host, std::int64_t bytes) override;
  bool reaches_other_ranks() const override { return cuda::devices_reach_each_other(); }
  bool has_channels() const override { return channels_ != nullptr; }
  std::shared_ptr<OpenChannels> open_channels() override { return channels_; }
  CommunicationStream* add_communication_stream() override;

 protected:
  TERATRON_OVERRIDE_OPERATIONS
  void do_replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) override;

 private:
  void start_cudnn_attention(KernelUse use);

  DType compute_dtype_;
  int number_;  // of the device
  bool tf32_, gemm_timing_, graphs_;
  KernelUse hopper_attention_;  // kOff on other devices
  cudaDeviceProp device_;
  cuda::MemoryMeter meter_;
  std::map<void*, std::int64_t> allocated_;
  cuda::Stream stream_;
  cuda::Timestamps timestamps_{stream_};
  cuda::Uploads uploads_{stream_};
  std::shared_ptr<cuda::NcclChannels> channels_;
  std::list<cuda::GpuCommunicationStream> communication_streams_;
  cuda::Scratch scratch_{stream_, &meter_};
  cuda::Gemm gemm_;
  std::optional<cuda::CudnnAttention> cudnn_attention_;
};

}  // namespace teratron
