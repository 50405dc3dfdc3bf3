#include "comm/device_group.h"

#include <algorithm>
#include <numeric>

#include "base/round_up.h"
#include "tensor/memory.h"

namespace teratron {
namespace {

using Piece = CommunicationStream::Channel::Piece;

constexpr std::int64_t kDevicePartAlignment = 64;  // elements; so that the device moves whole vectors

std::byte* at(const TensorRef& view, std::int64_t element) {
  return static_cast<std::byte*>(view.data) + element * size_of(view.dtype);
}

}  // namespace

std::unique_ptr<Pending::Work> DeviceGroup::start(Collective collective, const CollectiveViews& views, ReduceOp op,
                                                  int root) {
  stream_.wait_for(stream_.record_compute());
  switch (collective) {
    case Collective::kAllReduce: all_reduce(views.written, op); break;
    case Collective::kAllGather: all_gather(views.written, views.read); break;
    case Collective::kReduceScatter: reduce_scatter(views.written, views.read); break;
    case Collective::kBroadcast: broadcast(views.written, root); break;
    case Collective::kSend: exchange_with(root, views.read, {}); break;
    case Collective::kReceive: exchange_with(root, {}, views.written); break;
  }
  return std::make_unique<DeviceWork>(stream_);
}

// Pieces of every rank's part (`part` elements of `count`): at most `most` elements from `offset` on.
std::vector<DeviceGroup::Part> DeviceGroup::pieces_of(std::int64_t part, std::int64_t count, std::int64_t offset,
                                                      std::int64_t most) const {
  std::vector<Part> pieces;
  for (int rank = 0; rank < size_; ++rank) {
    const std::int64_t end = std::min(count, (rank + 1) * part), begin = std::min(end, rank * part + offset);
    pieces.push_back({begin, std::min(end, begin + most)});
  }
  return pieces;
}

// Number of elements whose values of all other ranks fit into the scratch memory.
std::int64_t DeviceGroup::most_at_once(DType dtype) const {
  const auto bytes = static_cast<std::int64_t>(stream_.scratch().size());
  const std::int64_t most = bytes / (size_ - 1) / size_of(dtype) / kDevicePartAlignment * kDevicePartAlignment;
  check(most > 0, "the stream's scratch memory holds a part of every other rank");
  return most;
}

// Each rank receives the others' values of its own piece and adds them up.
void DeviceGroup::reduce_own(const TensorRef& in, const std::vector<Part>& pieces, ReduceOp op, std::byte* out) {
  const Part own = pieces[static_cast<std::size_t>(rank_)];
  const std::int64_t size = size_of(in.dtype), own_bytes = (own.end - own.begin) * size;
  std::byte* theirs = stream_.scratch().data();
  std::vector<Piece> sends, receives;
  std::vector<const std::byte*> inputs;
  for (int rank = 0; rank < size_; ++rank) {
    const Part& piece = pieces[static_cast<std::size_t>(rank)];
    if (rank == rank_) {
      inputs.push_back(at(in, own.begin));
      continue;
    }
    if (piece.end > piece.begin) sends.push_back({rank, at(in, piece.begin), (piece.end - piece.begin) * size});
    if (own_bytes > 0) receives.push_back({rank, theirs, own_bytes});
    inputs.push_back(theirs);
    theirs += own_bytes;
  }
  channel_->exchange(sends, receives);
  if (own_bytes > 0) reduce_in_order(in.dtype, op, out, inputs, own.end - own.begin);
}

// Adds as many inputs at a time as the device takes. Partial sums lie where the first received values were, since the
// result may overlap an input that has not been added yet.
void DeviceGroup::reduce_in_order(DType dtype, ReduceOp op, std::byte* out, std::span<const std::byte* const> inputs,
                                  std::int64_t count) {
  std::byte* const so_far = stream_.scratch().data();
  std::vector<const std::byte*> some;
  for (const std::byte* const input : inputs) {
    some.push_back(input);
    const bool last = input == inputs.back();
    if (!last && some.size() < CommunicationStream::kMostRanks) continue;
    std::byte* const to = last ? out : so_far;
    stream_.reduce(dtype, op, {&to, 1}, some, count);
    some.assign({so_far});
  }
}

void DeviceGroup::share_own(const TensorRef& view, const std::vector<Part>& pieces) {
  std::vector<Piece> sends, receives;
  const auto bytes_of = [&](const Part& part) { return (part.end - part.begin) * size_of(view.dtype); };
  const Part& own = pieces[static_cast<std::size_t>(rank_)];
  for (int rank = 0; rank < size_; ++rank) {
    const Part& piece = pieces[static_cast<std::size_t>(rank)];
    if (rank == rank_) continue;
    if (bytes_of(own) > 0) sends.push_back({rank, at(view, own.begin), bytes_of(own)});
    if (bytes_of(piece) > 0) receives.push_back({rank, at(view, piece.begin), bytes_of(piece)});
  }
  channel_->exchange(sends, receives);
}

void DeviceGroup::all_reduce(const TensorRef& view, ReduceOp op) {
  const std::int64_t part = round_up((view.elements() + size_ - 1) / size_, kDevicePartAlignment);
  const std::int64_t most = most_at_once(view.dtype);
  for (std::int64_t offset = 0; offset < part; offset += most) {
    const std::vector<Part> pieces = pieces_of(part, view.elements(), offset, most);
    reduce_own(view, pieces, op, at(view, pieces[static_cast<std::size_t>(rank_)].begin));
    share_own(view, pieces);
  }
}

void DeviceGroup::reduce_scatter(const TensorRef& out, const TensorRef& in) {
  const std::int64_t most = most_at_once(in.dtype);
  for (std::int64_t offset = 0; offset < out.elements(); offset += most) {
    reduce_own(in, pieces_of(out.elements(), in.elements(), offset, most), ReduceOp::kSum, at(out, offset));
  }
}

void DeviceGroup::all_gather(const TensorRef& out, const TensorRef& in) {
  const std::int64_t part = in.elements();
  stream_.copy(at(out, rank_ * part), static_cast<const std::byte*>(in.data), in.bytes());
  share_own(out, pieces_of(part, out.elements(), 0, part));
}

void DeviceGroup::broadcast(const TensorRef& view, int root) {
  std::vector<Piece> sends, receives;
  if (rank_ != root) receives.push_back({root, at(view, 0), view.bytes()});
  for (int rank = 0; rank < size_ && rank_ == root; ++rank) {
    if (rank != root) sends.push_back({rank, at(view, 0), view.bytes()});
  }
  channel_->exchange(sends, receives);
}

void DeviceGroup::exchange_with(int peer, const TensorRef& sent, const TensorRef& received) {
  std::vector<Piece> sends, receives;
  if (sent) sends.push_back({peer, at(sent, 0), sent.bytes()});
  if (received) receives.push_back({peer, at(received, 0), received.bytes()});
  channel_->exchange(sends, receives);
}

void connect(CommunicationStream& stream, CommunicationStream::Channel& channel, Allocator& memory,
             std::span<const int> receivers, std::span<const int> senders) {
  if (receivers.empty() && senders.empty()) return;
  const Buffer buffer(memory, std::ssize(receivers) + std::ssize(senders));
  auto* byte = static_cast<std::byte*>(buffer.data());
  std::vector<Piece> sends, receives;
  for (const int rank : receivers) sends.push_back({rank, byte++, 1});
  for (const int rank : senders) receives.push_back({rank, byte++, 1});
  channel.exchange(sends, receives);
  stream.compute_waits_for(stream.record());  // as the end of the buffer does
}

bool devices_have_channels(Communicator& group, Allocator& memory) {
  std::vector<std::string> devices = group.all_gather_host(memory.has_channels() ? memory.memory_name() : "");
  std::ranges::sort(devices);
  return !devices.front().empty() && std::ranges::adjacent_find(devices) == devices.end();
}

std::shared_ptr<DeviceGroup> make_device_group(Communicator& group, Allocator& memory) {
  if (!devices_have_channels(group, memory)) return nullptr;
  CommunicationStream& stream = *memory.add_communication_stream();
  stream.scratch();  // taken before anyone asks how much is left
  const std::string id = group.all_gather_host(group.rank() == 0 ? stream.make_channel_id() : "").front();
  auto channel = stream.open_channel(id, group.rank(), group.size());
  std::vector<int> others(static_cast<std::size_t>(group.size()));
  std::iota(others.begin(), others.end(), 0);
  std::erase(others, group.rank());
  connect(stream, *channel, memory, others, others);
  return std::make_shared<DeviceGroup>(stream, std::move(channel), group.rank(), group.size());
}

}  // namespace teratron
