#include "comm/device_ring.h"

#include <array>

#include "comm/device_group.h"

namespace teratron {

std::unique_ptr<Pending::Work> DeviceRing::start_send(const TensorRef& view) {
  CommunicationStream& stream = *to_next_.stream;
  stream.wait_for(stream.record_compute());
  const CommunicationStream::Channel::Piece piece{1, static_cast<std::byte*>(view.data), view.bytes()};
  to_next_.channel->exchange({&piece, 1}, {});
  return std::make_unique<DeviceWork>(stream);
}

std::unique_ptr<Pending::Work> DeviceRing::start_receive(const TensorRef& view) {
  CommunicationStream& stream = *from_previous_.stream;
  stream.wait_for(stream.record_compute());  // earlier operations may still read the view
  const CommunicationStream::Channel::Piece piece{0, static_cast<std::byte*>(view.data), view.bytes()};
  from_previous_.channel->exchange({}, {&piece, 1});
  return std::make_unique<DeviceWork>(stream);
}

std::shared_ptr<DeviceRing> make_device_ring(Communicator& group, Allocator& memory, int step) {
  if (!devices_have_channels(group, memory)) return nullptr;
  const int size = group.size(), rank = group.rank();
  const int next = (rank + size + step) % size, previous = (rank + size - step) % size;
  DeviceRing::Link to_next{memory.add_communication_stream(), nullptr};
  DeviceRing::Link from_previous{memory.add_communication_stream(), nullptr};
  const std::vector<std::string> ids = group.all_gather_host(to_next.stream->make_channel_id());
  // Opening a link waits for its other end, so all ranks open links in the order of the senders.
  constexpr std::array kReceiver = {1}, kSender = {0};
  for (int sender = 0; sender < size; ++sender) {
    const std::string& id = ids[static_cast<std::size_t>(sender)];
    if (sender == rank) {
      to_next.channel = to_next.stream->open_channel(id, 0, 2);
      connect(*to_next.stream, *to_next.channel, memory, kReceiver, {});
    }
    if (sender == previous) {
      from_previous.channel = from_previous.stream->open_channel(id, 1, 2);
      connect(*from_previous.stream, *from_previous.channel, memory, {}, kSender);
    }
  }
  return std::make_shared<DeviceRing>(next, previous, std::move(to_next), std::move(from_previous));
}

}  // namespace teratron
