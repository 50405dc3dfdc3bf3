// Collectives on device memory that is reached through a channel alone, such as NCCL's. The device adds the values, in
// the ranks' order, so that the sum of up to CommunicationStream::kMostRanks ranks has the bits of every other kind of
// group; a device rounds 16-bit sums of more ranks in between.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "tensor/communication_stream.h"

namespace teratron {

// Work queued on a stream so far. Operations after wait() run after it.
class DeviceWork final : public Pending::Work {
 public:
  explicit DeviceWork(CommunicationStream& stream) : stream_(stream), done_(stream.record()) {}
  void wait() override { stream_.compute_waits_for(done_); }

 private:
  CommunicationStream& stream_;
  const CommunicationStream::EventPtr done_;
};

class DeviceGroup {
 public:
  using Channel = CommunicationStream::Channel;

  DeviceGroup(CommunicationStream& stream, std::unique_ptr<Channel> channel, int rank, int size)
      : stream_(stream), channel_(std::move(channel)), rank_(rank), size_(size) {}

  // Starts a collective, which the device runs after the back end's operations so far and before those after wait().
  // The host does not wait. Messages run one after another with everything else on the channel, so they must not form a
  // cycle.
  std::unique_ptr<Pending::Work> start(Collective collective, const CollectiveViews& views, ReduceOp op, int root);

 private:
  struct Part {
    std::int64_t begin, end;  // elements
  };
  void all_reduce(const TensorRef& view, ReduceOp op);
  void all_gather(const TensorRef& out, const TensorRef& in);
  void reduce_scatter(const TensorRef& out, const TensorRef& in);
  void broadcast(const TensorRef& view, int root);
  void exchange_with(int peer, const TensorRef& sent, const TensorRef& received);  // either may be absent
  std::vector<Part> pieces_of(std::int64_t part, std::int64_t count, std::int64_t offset, std::int64_t most) const;
  std::int64_t most_at_once(DType dtype) const;
  void reduce_own(const TensorRef& in, const std::vector<Part>& pieces, ReduceOp op, std::byte* out);
  void reduce_in_order(DType dtype, ReduceOp op, std::byte* out, std::span<const std::byte* const> inputs,
                       std::int64_t count);
  void share_own(const TensorRef& view, const std::vector<Part>& pieces);

  CommunicationStream& stream_;
  const std::unique_ptr<Channel> channel_;
  const int rank_, size_;
};

// Exchanges a byte on a channel that was just opened, so that no host has to wait in a later exchange. All its ranks
// call it.
void connect(CommunicationStream& stream, CommunicationStream::Channel& channel, Allocator& memory,
             std::span<const int> receivers, std::span<const int> senders);

// Whether each member has a device of its own and channels connect all of them. Every member calls it.
bool devices_have_channels(Communicator& group, Allocator& memory);

// Null on every member if devices_have_channels() is false. Every member calls it.
std::shared_ptr<DeviceGroup> make_device_group(Communicator& group, Allocator& memory);

}  // namespace teratron
