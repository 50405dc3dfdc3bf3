#include "comm/communicator.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "base/error.h"
#include "comm/device_group.h"
#include "comm/device_ring.h"
#include "comm/reduce.h"

namespace teratron {
namespace {

AwaitedCall call_of(std::span<const int> ranks) {
  AwaitedCall call{.first = ranks.front(), .size = static_cast<int>(ranks.size())};
  if (ranks.size() > 1) call.stride = ranks[1] - ranks[0];
  for (std::size_t member = 2; member < ranks.size(); ++member) {
    if (ranks[member] - ranks[member - 1] != call.stride) call.stride = 0;
  }
  return call;
}

// A group of one. Public members return before they call most of its functions.
class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

 protected:
  using Work = std::unique_ptr<Pending::Work>;
  Work do_all_reduce(const TensorRef&, ReduceOp) override { return nullptr; }
  Work do_all_gather(const TensorRef&, const TensorRef&) override { return nullptr; }
  Work do_reduce_scatter(const TensorRef&, const TensorRef&) override { return nullptr; }
  Work do_broadcast(const TensorRef&, int) override { return nullptr; }
  Work do_send(const TensorRef&, int) override { return nullptr; }
  Work do_receive(const TensorRef&, int) override { return nullptr; }
  void do_all_reduce_host(std::span<double>, ReduceOp) override {}
  std::vector<std::string> do_all_gather_host(const std::string& text) override { return {text}; }
  std::unique_ptr<Communicator> do_split(const std::vector<int>&) override { return make_self_communicator(); }
};

// Staging, for collectives on memory that hosts cannot read: inputs are copied to the host first, and results are
// copied back at the end.
constexpr std::align_val_t kStagingAlignment{64};

struct Free {
  void operator()(std::byte* memory) const { ::operator delete[](memory, kStagingAlignment); }
};

// A view's elements on the host; absent where the view is.
class HostCopy {
 public:
  explicit HostCopy(const TensorRef& view) : view_(view) {
    if (!view) return;
    memory_.reset(new (kStagingAlignment) std::byte[static_cast<std::size_t>(view.bytes())]);
    view_.data = memory_.get();
  }
  const TensorRef& view() const { return view_; }

 private:
  TensorRef view_;
  std::unique_ptr<std::byte[], Free> memory_;
};

class StagedWork final : public Pending::Work {
 public:
  StagedWork(Allocator& memory, const CollectiveViews& views)
      : memory_(memory), views_(views), read_(views.read), written_(is_one_view() ? TensorRef() : views.written) {
    if (views.read) memory.copy_out(read_.view().data, views.read.data, views.read.bytes());
  }

  void begin(const std::function<std::unique_ptr<Work>(const CollectiveViews&)>& begin) {
    work_ = begin({read_.view(), written()});
  }

  void wait() override {
    if (work_) work_->wait();
    if (views_.written) memory_.copy_in(views_.written.data, written().data, views_.written.bytes());
  }

 private:
  bool is_one_view() const {
    return views_.read.data == views_.written.data && views_.read.shape == views_.written.shape;
  }
  const TensorRef& written() const { return is_one_view() ? read_.view() : written_.view(); }

  Allocator& memory_;
  CollectiveViews views_;
  HostCopy read_, written_;
  std::unique_ptr<Work> work_;
};

// Begins a collective on host copies of the views.
std::unique_ptr<Pending::Work> start_staged(
    Allocator& memory, const CollectiveViews& views,
    const std::function<std::unique_ptr<Pending::Work>(const CollectiveViews&)>& begin) {
  auto work = std::make_unique<StagedWork>(memory, views);
  work->begin(begin);
  return work;
}

}  // namespace

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce: return "all-reduce";
    case Collective::kAllGather: return "all-gather";
    case Collective::kReduceScatter: return "reduce-scatter";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kSend: return "send";
    case Collective::kReceive: return "receive";
  }
  return "?";
}

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(work_, other.work_);  // `other` must wait for the work that was in progress here
  std::swap(call_, other.call_);
  return *this;
}

Pending::~Pending() {
  // Its views may be freed before it is done. While an exception unwinds, the group is being given up anyway.
  if (work_ && std::uncaught_exceptions() == 0) std::terminate();
}

void Pending::wait() {
  const std::unique_ptr<Work> work = std::move(work_);
  if (!work) return;
  const Place::Waits waits(call_);
  work->wait();
}

void Communicator::attach(Allocator* memory, Uses uses) {
  const bool is_far = memory != nullptr && !memory->is_host_memory();
  if (memory != memory_) {
    memory_ = memory;
    uses_.clear();
    device_stream_ = nullptr;
    device_group_ = nullptr;
    device_ring_ = nullptr;
    route_ = is_far ? Route::kThroughHost : Route::kDirect;
  }
  const bool is_new = uses_.insert(uses).second;
  if (!is_new || size() == 1 || uses == Uses::kHostExchanges) return;
  if (!is_far) {
    if (moves_host_memory()) return;
    throw UserError(
        "processes that were started without MPI move the memory of GPUs alone, and this rank's is the "
        "host's; start them by mpirun or srun");
  }
  if (is_in_one_process() && memory->reaches_other_ranks() && size() <= CommunicationStream::kMostRanks) {
    route_ = Route::kDirect;
    if (device_stream_ == nullptr) device_stream_ = memory->add_communication_stream();
  } else {
    open_channels(*memory, uses);
  }
}

void Communicator::open_channels(Allocator& memory, Uses uses) {
  if (const auto channels = memory.open_channels()) watch(channels);
  // Messages that are not a ring's take the channel of all members if nothing else can carry them.
  const bool takes_group = uses == Uses::kCollectives || !moves_host_memory();
  if (takes_group && device_group_ == nullptr) device_group_ = make_device_group(*this, memory);
  if (uses != Uses::kCollectives && device_ring_ == nullptr) {
    device_ring_ = make_device_ring(*this, memory, uses == Uses::kMessagesToNext ? 1 : -1);
  }
  if (device_group_ != nullptr || device_ring_ != nullptr) route_ = Route::kChannels;
  if (device_group_ == nullptr && !moves_host_memory()) {
    throw_environment_error(
        "these {} processes cannot exchange the memory of their GPUs: NCCL is missing on one of them, or two share a "
        "GPU. Without NCCL their tensors go through MPI: start them by mpirun or srun",
        size());
  }
}

Pending Communicator::start_all_reduce(TensorRef view, ReduceOp op) {
  return start({.collective = Collective::kAllReduce, .views = {view, view}, .op = op}, view,
               [=, this](const CollectiveViews& views) { return do_all_reduce(views.written, op); });
}

Pending Communicator::start_all_gather(TensorRef out, TensorRef in) {
  check(out.is_contiguous() && in.is_contiguous() && out.dtype == in.dtype, "views of an all-gather");
  check(size() > 1 || out.data == in.data, "a group of one gathers in place");
  check_equal(out.elements(), size() * in.elements(), "values gathered");
  return start({.collective = Collective::kAllGather, .views = {in, out}}, out,
               [this](const CollectiveViews& views) { return do_all_gather(views.written, views.read); });
}

Pending Communicator::start_reduce_scatter(TensorRef out, TensorRef in) {
  check(out.is_contiguous() && in.is_contiguous() && out.dtype == in.dtype, "views of a reduce-scatter");
  check(size() > 1 || out.data == in.data, "a group of one scatters in place");
  check_equal(in.elements(), size() * out.elements(), "values scattered");
  return start({.collective = Collective::kReduceScatter, .views = {in, out}}, in,
               [this](const CollectiveViews& views) { return do_reduce_scatter(views.written, views.read); });
}

Pending Communicator::start_broadcast(TensorRef view, int root) {
  check(root >= 0 && root < size(), "the root of a broadcast is a member");
  return start({.collective = Collective::kBroadcast, .views = {view, view}, .root = root}, view,
               [=, this](const CollectiveViews& views) { return do_broadcast(views.written, root); });
}

Pending Communicator::start_send(TensorRef view, int to) {
  check(to >= 0 && to < size() && to != rank(), "the receiver is another member");
  return start({.collective = Collective::kSend, .views = {view, {}}, .root = to}, view,
               [=, this](const CollectiveViews& views) { return do_send(views.read, to); });
}

Pending Communicator::start_receive(TensorRef view, int from) {
  check(from >= 0 && from < size() && from != rank(), "the sender is another member");
  return start({.collective = Collective::kReceive, .views = {{}, view}, .root = from}, view,
               [=, this](const CollectiveViews& views) { return do_receive(views.written, from); });
}

template <class Begin>
Pending Communicator::start(const Call& call, const TensorRef& counted, const Begin& begin) {
  check(counted.is_contiguous(), "views that are communicated are contiguous");
  if (size() == 1 || counted.elements() == 0) return {};
  Traffic::Count& count = traffic_[call.collective];
  ++count.calls;
  count.bytes += counted.bytes();
  const AwaitedCall awaited_call = awaited(call);
  const Place::Waits waits(awaited_call);  // starting a call may block too
  if (route_ == Route::kDirect) return {begin(call.views), awaited_call};
  if (route_ == Route::kChannels) {
    if (auto work = start_on_channels(call)) return {std::move(work), awaited_call};
  }
  return {start_staged(*memory_, call.views, begin), awaited_call};
}

AwaitedCall Communicator::call_of_all(const char* name) const {
  AwaitedCall call = world_ranks_.empty() ? AwaitedCall{.size = size()} : members_;
  call.name = name;
  return call;
}

AwaitedCall Communicator::awaited(const Call& call) const {
  switch (call.collective) {
    case Collective::kAllReduce: return call_of_all("all-reduce of");
    case Collective::kAllGather: return call_of_all("all-gather of");
    case Collective::kReduceScatter: return call_of_all("reduce-scatter of");
    case Collective::kBroadcast: return call_of_all("broadcast to");
    case Collective::kSend: return {.name = "send to", .first = world_rank(call.root), .size = 1};
    case Collective::kReceive: return {.name = "receive from", .first = world_rank(call.root), .size = 1};
  }
  return {};
}

// Starts a call on the channels; null if they do not carry it.
std::unique_ptr<Pending::Work> Communicator::start_on_channels(const Call& call) {
  const bool is_send = call.collective == Collective::kSend, is_receive = call.collective == Collective::kReceive;
  if (device_ring_ && is_send && call.root == device_ring_->next()) return device_ring_->start_send(call.views.read);
  if (device_ring_ && is_receive && call.root == device_ring_->previous()) {
    return device_ring_->start_receive(call.views.written);
  }
  if ((is_send || is_receive) && moves_host_memory()) return nullptr;  // a cycle of messages would block the channel
  return device_group_ ? device_group_->start(call.collective, call.views, call.op, call.root) : nullptr;
}

void Communicator::all_reduce_host(std::span<double> values, ReduceOp op) {
  if (size() == 1) return;
  const Place::Waits waits(call_of_all("host exchange of"));
  do_all_reduce_host(values, op);
}

void Communicator::do_all_reduce_host(std::span<double> values, ReduceOp op) {
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  const std::vector<std::string> all =
      do_all_gather_host(std::string(reinterpret_cast<const char*>(bytes), values.size_bytes()));
  std::vector<const std::byte*> inputs;
  for (const std::string& theirs : all) {
    check_equal(theirs.size(), values.size_bytes(), "bytes of another rank's values");
    inputs.push_back(reinterpret_cast<const std::byte*>(theirs.data()));
  }
  reduce_elements(DType::kF64, op, {&bytes, 1}, inputs, static_cast<std::int64_t>(values.size()));
}

std::vector<std::string> Communicator::all_gather_host(const std::string& text) {
  if (size() == 1) return {text};
  const Place::Waits waits(call_of_all("host exchange of"));
  return do_all_gather_host(text);
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  const std::vector<std::array<int, 2>> wishes = all_gather_host(std::array{color, key});
  std::vector<std::pair<int, int>> members;  // key, rank here
  for (int member = 0; member < size(); ++member) {
    const auto& [their_color, their_key] = wishes[static_cast<std::size_t>(member)];
    if (their_color == color) members.emplace_back(their_key, member);
  }
  std::ranges::sort(members);
  std::vector<int> ranks;
  for (const auto& [_, member] : members) ranks.push_back(member);
  const Place::Waits waits(call_of_all("split of"));
  std::unique_ptr<Communicator> group = do_split(ranks);
  for (const int member : ranks) group->world_ranks_.push_back(world_rank(member));
  group->members_ = call_of(group->world_ranks_);
  return group;
}

std::unique_ptr<Communicator> make_self_communicator() { return std::make_unique<SelfCommunicator>(); }

}  // namespace teratron
