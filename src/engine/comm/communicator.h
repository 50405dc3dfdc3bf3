// Communicator: a group of ranks that reduce and exchange views. Every member of a group calls the same collectives in
// the same order with views of the same shape and type. A group of one makes every collective a no-op, so
// layers call them without asking how many ranks there are.
//
// Sums are bitwise repeatable for a given group, the same bits on every rank; values of 16 bits are added in fp32 and
// rounded once (through channels: once for every CommunicationStream::kMostRanks ranks). Where a
// rank is lost or fails, waiting on it ends with a LostRank (comm/lost_rank.h), never with a hang. Collectives may be
// under way together; ranks that share two of them, of one group or of several, start and wait for them in the same
// order.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "comm/place.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace teratron {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSend, kReceive };
constexpr std::size_t kCollectiveKinds = 6;
std::string_view name_of(Collective collective);

// Calls of a rank to groups of more than one, by kind, and the bytes of their views (the whole view of an all-reduce or
// broadcast, the larger of the two of a gather or scatter).
struct Traffic {
  struct Count {
    std::int64_t calls = 0, bytes = 0;
    bool operator==(const Count&) const = default;
  };
  std::array<Count, kCollectiveKinds> counts{};
  Count& operator[](Collective collective) { return counts[static_cast<std::size_t>(collective)]; }
  const Count& operator[](Collective collective) const { return counts[static_cast<std::size_t>(collective)]; }
};

// A collective under way. Its views belong to it until wait() returns; forgetting to wait ends the program.
class [[nodiscard]] Pending {
 public:
  class Work {
   public:
    virtual ~Work() = default;
    virtual void wait() = 0;
  };
  Pending() = default;  // done
  Pending(std::unique_ptr<Work> work, const AwaitedCall& call) : work_(std::move(work)), call_(call) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();
  void wait();

 private:
  std::unique_ptr<Work> work_;
  AwaitedCall call_;  // for who watches the rank
};

// Views that a collective reads and writes; either may be absent, and they may be the same view.
struct CollectiveViews {
  TensorRef read, written;
};

class DeviceGroup;
class DeviceRing;

// Types that hosts exchange byte by byte.
template <class T>
concept PlainValue = std::is_trivially_copyable_v<T> && !std::convertible_to<T, std::string>;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // of the caller within the group
  virtual int size() const = 0;

  // Views are contiguous, of any dtype. In place, the same bits on every rank.
  Pending start_all_reduce(TensorRef view, ReduceOp op = ReduceOp::kSum);
  // out[size * n, ..] from everyone's in[n, ..], by rank; `in` may be the caller's own part of out, and in a group of
  // one it must be out itself: nothing is copied.
  Pending start_all_gather(TensorRef out, TensorRef in);
  // out[n, ..]: the caller's part of the sum of everyone's in[size * n, ..]; out may be the caller's part of in, and in
  // a group of one it must be `in` itself. Callers do not use the rest of `in` again.
  Pending start_reduce_scatter(TensorRef out, TensorRef in);
  Pending start_broadcast(TensorRef view, int root);
  // Between two ranks of the group. Sends to one rank arrive in the order they were started.
  // A send may end only when its receive has been started.
  Pending start_send(TensorRef view, int to);
  Pending start_receive(TensorRef view, int from);

  void all_reduce(TensorRef view, ReduceOp op = ReduceOp::kSum) { start_all_reduce(view, op).wait(); }
  void all_gather(TensorRef out, TensorRef in) { start_all_gather(out, in).wait(); }
  void reduce_scatter(TensorRef out, TensorRef in) { start_reduce_scatter(out, in).wait(); }
  void broadcast(TensorRef view, int root) { start_broadcast(view, root).wait(); }

  // Host exchanges: a few values in host memory, such as norms, losses, flags and texts. Not counted as traffic.
  void all_reduce_host(std::span<double> values, ReduceOp op = ReduceOp::kSum);
  std::vector<std::string> all_gather_host(const std::string& text);  // by rank
  template <PlainValue T>
  std::vector<T> all_gather_host(const T& value);  // by rank
  void barrier() { all_reduce_host({}); }

  // Groups of the members that name the same color, ranked by key and then by rank here. Everyone calls it.
  std::unique_ptr<Communicator> split(int color, int key);

  // Sets the memory of the views: opened around every access (tensor/memory.h), not owned; nullptr: plain memory.
  // Chooses the path of collectives on it. Memory that hosts cannot read takes one of three routes:
  //   - ranks in one process whose devices reach each other: a stream of the device copies and adds;
  //   - channels (NCCL): a stream of the device, for collectives, or for messages to the next rank of a ring;
  //   - else copies on the host.
  // Every member calls it, for the same uses. A further call with the same memory adds a use to those before. The first
  // direction of a ring stays. UserError: processes without MPI that attach an allocator of host memory;
  // EnvironmentError: of device memory that no channel reaches.
  enum class Uses { kCollectives, kMessagesToNext, kMessagesToPrevious, kHostExchanges };
  void attach(Allocator* memory, Uses uses = Uses::kCollectives);

  // Runs `work`, which exchanges device memory. Where it throws, ranks of other processes learn the reason and this
  // one's channels are aborted before anything is destroyed: what a device does with memory ends before the memory is
  // freed, and a receive would wait for ever.
  template <class Work>
  auto or_give_up(const Work& work);

  const Traffic& traffic() const { return traffic_; }

 protected:
  Allocator* memory() const { return memory_; }
  virtual bool is_in_one_process() const { return false; }  // its members are threads
  virtual bool moves_host_memory() const { return true; }   // false: only channels move tensors
  // Stream of ranks in one process whose devices reach each other's memory; else null, and views lie on the host.
  CommunicationStream* device_stream() const { return device_stream_; }

  // Called for groups of more than one and views of at least one element only; arguments are checked.
  virtual std::unique_ptr<Pending::Work> do_all_reduce(const TensorRef& view, ReduceOp op) = 0;
  virtual std::unique_ptr<Pending::Work> do_all_gather(const TensorRef& out, const TensorRef& in) = 0;
  virtual std::unique_ptr<Pending::Work> do_reduce_scatter(const TensorRef& out, const TensorRef& in) = 0;
  virtual std::unique_ptr<Pending::Work> do_broadcast(const TensorRef& view, int root) = 0;
  virtual std::unique_ptr<Pending::Work> do_send(const TensorRef& view, int to) = 0;
  virtual std::unique_ptr<Pending::Work> do_receive(const TensorRef& view, int from) = 0;
  virtual void do_all_reduce_host(std::span<double> values, ReduceOp op);  // by default a gather, then a sum
  virtual std::vector<std::string> do_all_gather_host(const std::string& text) = 0;
  // `members`: the ranks here of the new group that the caller belongs to, by their rank there.
  virtual std::unique_ptr<Communicator> do_split(const std::vector<int>& members) = 0;
  // Ranks that are processes have both: channels that a member looks after, and its end by the exception that is being
  // handled.
  virtual void watch(const std::shared_ptr<OpenChannels>& /*channels*/) {}
  virtual void give_up() noexcept {}

 private:
  struct Call {
    Collective collective;
    CollectiveViews views;
    ReduceOp op = ReduceOp::kSum;
    int root = 0;  // of a broadcast; the other end of a message
  };
  template <class Begin>
  Pending start(const Call& call, const TensorRef& counted, const Begin& begin);
  std::unique_ptr<Pending::Work> start_on_channels(const Call& call);
  int world_rank(int rank) const { return world_ranks_.empty() ? rank : world_ranks_[static_cast<std::size_t>(rank)]; }
  AwaitedCall call_of_all(const char* name) const;  // by all members
  AwaitedCall awaited(const Call& call) const;
  void open_channels(Allocator& memory, Uses uses);

  // Path of collectives on the attached memory.
  enum class Route { kDirect, kChannels, kThroughHost };  // direct: the group reads the views itself
  Route route_ = Route::kDirect;
  Allocator* memory_ = nullptr;
  std::set<Uses> uses_;  // of that memory
  CommunicationStream* device_stream_ = nullptr;
  std::shared_ptr<DeviceGroup> device_group_;
  std::shared_ptr<DeviceRing> device_ring_;
  Traffic traffic_;
  std::vector<int> world_ranks_;  // of the members; empty: the group is the world
  AwaitedCall members_;           // the same, for calls
};

template <class Work>
auto Communicator::or_give_up(const Work& work) {
  try {
    return work();
  } catch (...) {
    give_up();
    throw;
  }
}

template <PlainValue T>
std::vector<T> Communicator::all_gather_host(const T& value) {
  std::vector<T> values;
  for (const std::string& bytes : all_gather_host(std::string(reinterpret_cast<const char*>(&value), sizeof(T)))) {
    check_equal(bytes.size(), sizeof(T), "bytes of another rank's value");
    std::memcpy(&values.emplace_back(), bytes.data(), sizeof(T));
  }
  return values;
}

// The group that holds the caller alone.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace teratron
