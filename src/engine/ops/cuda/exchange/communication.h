// Communication streams of a GPU. Their kernels access the memory of all ranks of the process, on the same device or on
// devices that it can access directly.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "ops/cuda/exchange/nccl_channel.h"
#include "ops/cuda/runtime/device.h"
#include "tensor/communication_stream.h"

namespace teratron::cuda {

// Whether every GPU that this process sees can read and write the memory of every other one.
bool devices_reach_each_other();

class GpuCommunicationStream final : public CommunicationStream {
 public:
  // `channels`: null where none are opened.
  GpuCommunicationStream(cudaStream_t compute, int device, std::shared_ptr<NcclChannels> channels, MemoryMeter* meter)
      : compute_(compute), device_(device), channels_(std::move(channels)), meter_(meter), scratch_(stream_, meter) {}

  EventPtr record_compute() override;
  EventPtr record() override;
  void wait_for(const EventPtr& event) override;
  void compute_waits_for(const EventPtr& event) override;
  std::string make_channel_id() override { return make_nccl_id(); }
  std::unique_ptr<Channel> open_channel(const std::string& id, int rank, int size) override;
  std::span<std::byte> scratch() override {
    return {scratch_.of<std::byte>(kScratchBytes), static_cast<std::size_t>(kScratchBytes)};
  }
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
              std::int64_t count) override;

 private:
  static constexpr std::int64_t kScratchBytes = std::int64_t{64} << 20;

  void reach(int device);

  const cudaStream_t compute_;
  const int device_;
  const std::shared_ptr<NcclChannels> channels_;
  MemoryMeter* const meter_;
  Stream stream_{Stream::Priority::kHigh};  // ranks wait for its results, while computing goes on beside it
  Scratch scratch_;
  std::set<int> reached_;
};

}  // namespace teratron::cuda
