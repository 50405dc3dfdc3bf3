// Messages between devices that reach each other only through channels: from every rank of a group to the next one of a
// ring, in one direction. Each link has its own channel and its own stream at both ends, so messages with one neighbour
// never wait for those with the other.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "tensor/communication_stream.h"

namespace teratron {

class DeviceRing {
 public:
  struct Link {
    CommunicationStream* stream = nullptr;
    std::unique_ptr<CommunicationStream::Channel> channel;  // of two: rank 0 sends, rank 1 receives
  };
  DeviceRing(int next, int previous, Link to_next, Link from_previous)
      : next_(next), previous_(previous), to_next_(std::move(to_next)), from_previous_(std::move(from_previous)) {}

  int next() const { return next_; }          // this rank sends to it
  int previous() const { return previous_; }  // this rank receives from it

  // A message runs after the back end's operations so far and before those after wait(); the host does not wait.
  std::unique_ptr<Pending::Work> start_send(const TensorRef& view);
  std::unique_ptr<Pending::Work> start_receive(const TensorRef& view);

 private:
  const int next_, previous_;
  Link to_next_, from_previous_;
};

// Every member calls it. `step`: 1 if messages go to the next higher rank, -1 to the next lower one. Null on all
// members if the devices have no channels, or members share a device.
std::shared_ptr<DeviceRing> make_device_ring(Communicator& group, Allocator& memory, int step);

}  // namespace teratron
