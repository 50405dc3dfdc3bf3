// Collectives on the memory of devices that reach each other through a channel alone, NCCL's for one. Values are added
// up by the device, in the ranks' order: the bits of every other kind of group.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "tensor/communication_stream.h"

namespace teratron {

// What was queued on a stream so far: what is computed after wait() comes after it.
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

  // All but messages. The back end's computing so far comes before it, and what is computed after wait() after it; the
  // host waits for nothing.
  std::unique_ptr<Pending::Work> start(Collective collective, const CollectiveViews& views, ReduceOp op, int root);

 private:
  struct Part {
    std::int64_t begin, end;  // elements
  };
  void all_reduce(const TensorRef& view, ReduceOp op);
  void all_gather(const TensorRef& out, const TensorRef& in);
  void reduce_scatter(const TensorRef& out, const TensorRef& in);
  void broadcast(const TensorRef& view, int root);
  std::vector<Part> pieces_of(std::int64_t part, std::int64_t count, std::int64_t offset, std::int64_t most) const;
  std::int64_t most_at_once(DType dtype) const;
  void reduce_own(const TensorRef& in, const std::vector<Part>& pieces, ReduceOp op, std::byte* out);
  void share_own(const TensorRef& view, const std::vector<Part>& pieces);

  CommunicationStream& stream_;
  const std::unique_ptr<Channel> channel_;
  const int rank_, size_;
};

// Every member calls it: whether each has a device of its own, and channels lead from one to the other.
bool devices_have_channels(Communicator& group, Allocator& memory);

// Every member calls it. Null for all of them where that is not so.
std::shared_ptr<DeviceGroup> make_device_group(Communicator& group, Allocator& memory);

}  // namespace teratron
