#include "comm/thread/thread_group.h"

#include <algorithm>

#include "base/error.h"
#include "base/round_up.h"
#include "comm/reduce.h"

namespace teratron {
namespace {

constexpr std::int64_t kThreadPartAlignment = 64;  // elements; what two ranks write lies in different cache lines

std::byte* bytes_of(const TensorRef& view) { return static_cast<std::byte*>(view.data); }

// Elements [begin, end) of everyone's `in`, reduced into each of `outputs`, which begin at element `begin`.
void reduce_members(CommunicationStream& stream, const Rendezvous& rendezvous, const std::vector<std::byte*>& outputs,
                    std::int64_t begin, std::int64_t end) {
  const CollectiveCall& call = rendezvous.call();
  if (begin == end) return;
  std::vector<const std::byte*> inputs;
  for (int member = 0; member < rendezvous.size(); ++member) {
    inputs.push_back(bytes_of(rendezvous.from(member).in) + begin * size_of(call.dtype));
  }
  stream.reduce(call.dtype, call.op, outputs, inputs, end - begin);
}

// Each rank reduces a part of its own and writes it to everyone: all bytes are read and written once.
void all_reduce(CommunicationStream& stream, const Rendezvous& rendezvous, int rank) {
  const CollectiveCall& call = rendezvous.call();
  const std::int64_t part = round_up((call.elements + rendezvous.size() - 1) / rendezvous.size(), kThreadPartAlignment);
  const std::int64_t begin = std::min(call.elements, rank * part), end = std::min(call.elements, begin + part);
  std::vector<std::byte*> outputs;
  for (int member = 0; member < rendezvous.size(); ++member) {
    outputs.push_back(bytes_of(rendezvous.from(member).out) + begin * size_of(call.dtype));
  }
  reduce_members(stream, rendezvous, outputs, begin, end);
}

void all_gather(CommunicationStream& stream, const Rendezvous& rendezvous, int rank) {
  const std::int64_t bytes = rendezvous.from(rank).in.bytes();
  for (int member = 0; member < rendezvous.size(); ++member) {
    stream.copy(bytes_of(rendezvous.from(rank).out) + member * bytes, bytes_of(rendezvous.from(member).in), bytes);
  }
}

void reduce_scatter(CommunicationStream& stream, const Rendezvous& rendezvous, int rank) {
  const std::int64_t part = rendezvous.call().elements;
  reduce_members(stream, rendezvous, {bytes_of(rendezvous.from(rank).out)}, rank * part, (rank + 1) * part);
}

void broadcast(CommunicationStream& stream, const Rendezvous& rendezvous, int rank) {
  const TensorRef& from = rendezvous.from(rendezvous.call().root).in;
  stream.copy(bytes_of(rendezvous.from(rank).out), bytes_of(from), from.bytes());
}

void take_part(CommunicationStream& stream, const Rendezvous& rendezvous, int rank) {
  switch (rendezvous.call().collective) {
    case Collective::kAllReduce: return all_reduce(stream, rendezvous, rank);
    case Collective::kAllGather: return all_gather(stream, rendezvous, rank);
    case Collective::kReduceScatter: return reduce_scatter(stream, rendezvous, rank);
    case Collective::kBroadcast: return broadcast(stream, rendezvous, rank);
    case Collective::kSend:
    case Collective::kReceive: break;  // messages
  }
  throw InternalError("a rendezvous is for all members");
}

class RendezvousWork : public Pending::Work {
 public:
  RendezvousWork(std::shared_ptr<Rendezvous> rendezvous, int rank, CommunicationStream& stream, Allocator* memory)
      : rendezvous_(std::move(rendezvous)), rank_(rank), stream_(stream), memory_(memory) {}
  void wait() override {
    const OpenMemory open(memory_);  // for the members that read it
    rendezvous_->enter(rank_);
    CommunicationStream::EventPtr done;
    try {
      done = queue_part();
    } catch (...) {
      rendezvous_->give_up_part(rank_);  // the others still reach into this rank's memory
      throw;
    }
    rendezvous_->finish(rank_, std::move(done));
    for (int member = 0; member < rendezvous_->size(); ++member) stream_.compute_waits_for(rendezvous_->done(member));
  }

 protected:
  CommunicationStream& stream() const { return stream_; }
  Rendezvous& rendezvous() const { return *rendezvous_; }
  int rank() const { return rank_; }
  virtual CommunicationStream::EventPtr queue_part() {
    for (int member = 0; member < rendezvous_->size(); ++member) stream_.wait_for(rendezvous_->from(member).ready);
    take_part(stream_, *rendezvous_, rank_);
    return stream_.record();
  }

 private:
  const std::shared_ptr<Rendezvous> rendezvous_;
  const int rank_;
  CommunicationStream& stream_;
  Allocator* const memory_;
};

class DeviceRendezvousWork;

// Collectives of a rank in one group that are in progress, in the order of their start.
using DeviceRendezvousList = std::vector<DeviceRendezvousWork*>;

// A collective on device memory. Its part is queued early if another collective of the group starts after all members
// have joined this one.
class DeviceRendezvousWork final : public RendezvousWork {
 public:
  DeviceRendezvousWork(std::shared_ptr<Rendezvous> rendezvous, int rank, CommunicationStream& stream,
                       std::shared_ptr<DeviceRendezvousList> under_way)
      : RendezvousWork(std::move(rendezvous), rank, stream, nullptr), under_way_(std::move(under_way)) {
    under_way_->push_back(this);
  }
  ~DeviceRendezvousWork() override {
    std::erase(*under_way_, this);
    if (waited_) return;
    try {
      for (const CommunicationStream::EventPtr& begun : rendezvous().withdraw()) {
        if (begun) stream().compute_waits_for(begun);
      }
    } catch (const EnvironmentError&) {  // the device failed; the member that gave up waiting reports it
    }
  }
  void wait() override {
    RendezvousWork::wait();
    waited_ = true;
  }
  void queue_early() {
    if (done_) return;
    rendezvous().take_part_early(rank(), [this] { return queue_part(); });
  }

 private:
  CommunicationStream::EventPtr queue_part() override {
    if (!done_) done_ = RendezvousWork::queue_part();
    return done_;
  }

  const std::shared_ptr<DeviceRendezvousList> under_way_;
  CommunicationStream::EventPtr done_;
  bool waited_ = false;
};

// The memory is open from the start, since the other side may copy before this one waits.
class MessageWork final : public Pending::Work {
 public:
  MessageWork(ThreadGroup& group, int sender, int receiver, bool sends, const TensorRef& view,
              CommunicationStream& stream, Allocator* memory)
      : open_(memory),
        stream_(stream),
        message_(group.send_or_receive(sender, receiver, sends, view, stream.record_compute())),
        sends_(sends) {}
  ~MessageWork() override {
    if (waited_) return;
    try {
      message_->withdraw(stream_);
    } catch (const EnvironmentError&) {  // the device failed; the member that gave up waiting reports it
    }
  }
  void wait() override {
    message_->wait(sends_, stream_);
    waited_ = true;
  }

 private:
  const OpenMemory open_;
  CommunicationStream& stream_;
  const std::shared_ptr<Message> message_;
  const bool sends_;
  bool waited_ = false;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

 protected:
  using Work = std::unique_ptr<Pending::Work>;

  bool is_in_one_process() const override { return true; }
  Work do_all_reduce(const TensorRef& view, ReduceOp op) override {
    check_number(view.dtype);
    return meet({.collective = Collective::kAllReduce, .dtype = view.dtype, .elements = view.elements(), .op = op},
                {.out = view, .in = view});
  }
  Work do_all_gather(const TensorRef& out, const TensorRef& in) override {
    return meet({.collective = Collective::kAllGather, .dtype = in.dtype, .elements = in.elements()},
                {.out = out, .in = in});
  }
  Work do_reduce_scatter(const TensorRef& out, const TensorRef& in) override {
    check_number(in.dtype);
    return meet({.collective = Collective::kReduceScatter, .dtype = in.dtype, .elements = out.elements()},
                {.out = out, .in = in});
  }
  Work do_broadcast(const TensorRef& view, int root) override {
    return meet({.collective = Collective::kBroadcast, .dtype = view.dtype, .elements = view.elements(), .root = root},
                {.out = view, .in = view});
  }
  Work do_send(const TensorRef& view, int to) override {
    return std::make_unique<MessageWork>(*group_, rank_, to, true, view, stream(), memory());
  }
  Work do_receive(const TensorRef& view, int from) override {
    return std::make_unique<MessageWork>(*group_, from, rank_, false, view, stream(), memory());
  }
  void do_all_reduce_host(std::span<double> values, ReduceOp op) override {
    const TensorRef view(values.data(), DType::kF64, {static_cast<std::int64_t>(values.size())});
    const CollectiveCall call = {
        .collective = Collective::kAllReduce, .dtype = view.dtype, .elements = view.elements(), .op = op};
    RendezvousWork(group_->join(calls_++, rank_, call, {.out = view, .in = view}), rank_, host_, nullptr).wait();
  }
  std::vector<std::string> do_all_gather_host(const std::string& text) override {
    const auto rendezvous = group_->join(calls_++, rank_, {.collective = Collective::kAllGather}, {.text = &text});
    rendezvous->enter(rank_);
    std::vector<std::string> texts;
    for (int member = 0; member < size(); ++member) texts.push_back(*rendezvous->from(member).text);
    rendezvous->finish(rank_, nullptr);
    return texts;
  }
  std::unique_ptr<Communicator> do_split(const std::vector<int>& members) override {
    const auto rank = std::ranges::find(members, rank_) - members.begin();
    return make_thread_communicator(group_->part(splits_++, members), static_cast<int>(rank));
  }

 private:
  static void check_number(DType dtype) {
    check(dtype != DType::kU8 && dtype != DType::kU16, "values that are reduced are numbers");
  }
  CommunicationStream& stream() {
    CommunicationStream* const device = device_stream();
    return device != nullptr ? *device : host_;
  }
  Work meet(const CollectiveCall& call, Contribution contribution) {
    CommunicationStream* const device = device_stream();
    if (device != nullptr) contribution.ready = device->record_compute();
    auto rendezvous = group_->join(calls_++, rank_, call, contribution);
    if (device == nullptr) return std::make_unique<RendezvousWork>(std::move(rendezvous), rank_, host_, memory());
    for (DeviceRendezvousWork* const earlier : *under_way_) earlier->queue_early();
    return std::make_unique<DeviceRendezvousWork>(std::move(rendezvous), rank_, *device, under_way_);
  }

  const std::shared_ptr<ThreadGroup> group_;
  const int rank_;
  HostStream host_;
  const std::shared_ptr<DeviceRendezvousList> under_way_ = std::make_shared<DeviceRendezvousList>();
  std::int64_t calls_ = 0, splits_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<ThreadGroup> group, int rank) {
  return std::make_unique<ThreadCommunicator>(std::move(group), rank);
}

}  // namespace teratron
