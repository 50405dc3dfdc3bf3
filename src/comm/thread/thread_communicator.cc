#include "comm/thread/thread_communicator.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/error.h"
#include "base/threads.h"
#include "comm/reduce.h"

namespace teratron {
namespace {

constexpr std::int64_t kAlignment = 64;       // elements; what two ranks write lies in different cache lines
constexpr std::int64_t kGrain = 1 << 14;      // elements handed to a thread of a rank at a time
constexpr std::int64_t kCopyGrain = 1 << 16;  // bytes

// Keeps a member's memory open for whoever reaches into it.
class OpenMemory {
 public:
  explicit OpenMemory(Allocator* memory) : memory_(memory) {
    if (memory_ != nullptr) memory_->open_memory();
  }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
  ~OpenMemory() {
    if (memory_ != nullptr) memory_->close_memory();
  }

 private:
  Allocator* const memory_;
};

std::byte* bytes_of(const TensorRef& view) { return static_cast<std::byte*>(view.data); }

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (to == from) return;
  parallel_for(bytes, kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

// Elements [begin, end) of everyone's `in`, reduced into each of `outputs`, which begin at element `begin`.
void reduce_members(const Meeting& meeting, const std::vector<std::byte*>& outputs, std::int64_t begin,
                    std::int64_t end) {
  const CollectiveCall& call = meeting.call();
  const std::int64_t size = size_of(call.dtype);
  const auto members = static_cast<std::size_t>(meeting.size());
  parallel_for(end - begin, kGrain, [&](std::int64_t first, std::int64_t last) {
    std::vector<const std::byte*> from(members);
    std::vector<std::byte*> to = outputs;
    for (std::size_t rank = 0; rank < members; ++rank) {
      from[rank] = bytes_of(meeting.from(static_cast<int>(rank)).in) + (begin + first) * size;
    }
    for (std::byte*& output : to) output += first * size;
    reduce_elements(call.dtype, call.op, to, from, last - first);
  });
}

// Each rank reduces a part of its own and writes it to everyone: all bytes are read and written once.
void all_reduce(const Meeting& meeting, int rank) {
  const CollectiveCall& call = meeting.call();
  const std::int64_t even = (call.elements + meeting.size() - 1) / meeting.size();
  const std::int64_t part = (even + kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t begin = std::min(call.elements, rank * part), end = std::min(call.elements, begin + part);
  std::vector<std::byte*> outputs;
  for (int member = 0; member < meeting.size(); ++member) {
    outputs.push_back(bytes_of(meeting.from(member).out) + begin * size_of(call.dtype));
  }
  reduce_members(meeting, outputs, begin, end);
}

void all_gather(const Meeting& meeting, int rank) {
  const std::int64_t bytes = meeting.from(rank).in.bytes();
  for (int member = 0; member < meeting.size(); ++member) {
    copy_bytes(bytes_of(meeting.from(rank).out) + member * bytes, bytes_of(meeting.from(member).in), bytes);
  }
}

void reduce_scatter(const Meeting& meeting, int rank) {
  const std::int64_t part = meeting.call().elements;
  reduce_members(meeting, {bytes_of(meeting.from(rank).out)}, rank * part, (rank + 1) * part);
}

void broadcast(const Meeting& meeting, int rank) {
  const TensorRef& from = meeting.from(meeting.call().root).in;
  copy_bytes(bytes_of(meeting.from(rank).out), bytes_of(from), from.bytes());
}

void take_part(const Meeting& meeting, int rank) {
  switch (meeting.call().collective) {
    case Collective::kAllReduce: return all_reduce(meeting, rank);
    case Collective::kAllGather: return all_gather(meeting, rank);
    case Collective::kReduceScatter: return reduce_scatter(meeting, rank);
    case Collective::kBroadcast: return broadcast(meeting, rank);
    case Collective::kSend:
    case Collective::kReceive: break;  // messages
  }
  throw InternalError("a meeting is for all members");
}

class MeetingWork final : public Pending::Work {
 public:
  MeetingWork(std::shared_ptr<Meeting> meeting, int rank, Allocator* memory)
      : meeting_(std::move(meeting)), rank_(rank), memory_(memory) {}
  void wait() override {
    const OpenMemory open(memory_);
    meeting_->enter(rank_);
    take_part(*meeting_, rank_);
    meeting_->finish();
  }

 private:
  const std::shared_ptr<Meeting> meeting_;
  const int rank_;
  Allocator* const memory_;
};

// The memory is open from the start, since the other side may copy before this one waits.
class MessageWork final : public Pending::Work {
 public:
  MessageWork(ThreadGroup& group, int sender, int receiver, bool sends, const TensorRef& view, Allocator* memory)
      : open_(memory), message_(group.send_or_receive(sender, receiver, sends, view)), sends_(sends) {}
  ~MessageWork() override { message_->withdraw(); }
  void wait() override { message_->wait(sends_); }

 private:
  const OpenMemory open_;
  const std::shared_ptr<Message> message_;
  const bool sends_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  void set_activity(std::string_view activity) override {
    group_->team().set_activity(group_->team_rank(rank_), activity);
  }

 protected:
  using Work = std::unique_ptr<Pending::Work>;

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
    return std::make_unique<MessageWork>(*group_, rank_, to, true, view, memory());
  }
  Work do_receive(const TensorRef& view, int from) override {
    return std::make_unique<MessageWork>(*group_, from, rank_, false, view, memory());
  }
  void do_all_reduce_host(std::span<double> values, ReduceOp op) override {
    const TensorRef view(values.data(), DType::kF64, {static_cast<std::int64_t>(values.size())});
    do_all_reduce(view, op)->wait();
  }
  std::vector<std::string> do_all_gather_host(const std::string& text) override {
    const auto meeting = group_->join(calls_++, rank_, {.collective = Collective::kAllGather}, {.text = &text});
    meeting->enter(rank_);
    std::vector<std::string> texts;
    for (int member = 0; member < size(); ++member) texts.push_back(*meeting->from(member).text);
    meeting->finish();
    return texts;
  }
  std::unique_ptr<Communicator> do_split(const std::vector<int>& members) override {
    const auto place = std::ranges::find(members, rank_) - members.begin();
    return make_thread_communicator(group_->part(splits_++, members), static_cast<int>(place));
  }

 private:
  static void check_number(DType dtype) {
    check(dtype != DType::kU8 && dtype != DType::kU16, "values that are reduced are numbers");
  }
  Work meet(const CollectiveCall& call, const Contribution& contribution) {
    return std::make_unique<MeetingWork>(group_->join(calls_++, rank_, call, contribution), rank_, memory());
  }

  const std::shared_ptr<ThreadGroup> group_;
  const int rank_;
  std::int64_t calls_ = 0, splits_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<ThreadGroup> group, int rank) {
  return std::make_unique<ThreadCommunicator>(std::move(group), rank);
}

}  // namespace teratron
