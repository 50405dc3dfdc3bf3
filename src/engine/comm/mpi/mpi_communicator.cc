// Groups of ranks that are processes and exchange through MPI. MPI moves the bytes; sums are made here, in the ranks'
// order, because MPI promises neither an order nor the same bits on every rank and would round 16-bit sums at each
// step.
//
// Host exchanges go through MPI too, not through the control plane: a group needs no third process for them, and they
// take microseconds, several times a training step.
#include <cstring>
#include <utility>

#include "base/error.h"
#include "comm/mpi/mpi_job.h"
#include "comm/mpi/mpi_requests.h"
#include "comm/mpi/reduce_work.h"

namespace teratron {
namespace {

// Keeps the memory open while messages are under way: MPI, and other processes through it, access it at any time.
class OpenMemoryWork final : public Pending::Work {
 public:
  explicit OpenMemoryWork(Allocator* memory) : open_(memory) {}
  void begin(std::unique_ptr<Pending::Work> work) { work_ = std::move(work); }
  void wait() override { work_->wait(); }

 private:
  const OpenMemory open_;  // outlives work_
  std::unique_ptr<Pending::Work> work_;
};

// One MPI communicator for collectives and one for the callers' own messages. Neither is ever freed: freeing waits for
// all members, which may be lost, and a run makes only a few.
struct MpiGroup {
  MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MpiGroup group, ControlPlane& control) : group_(group), control_(control) {
    for (MPI_Comm communicator : {group_.collectives, group_.messages}) {
      check_mpi(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "set the error handler");
    }
    check_mpi(MPI_Comm_rank(group_.collectives, &rank_), "get the rank");
    check_mpi(MPI_Comm_size(group_.collectives, &size_), "get the group's size");
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  using Work = std::unique_ptr<Pending::Work>;

  Work do_all_reduce(const TensorRef& view, ReduceOp op) override { return start_reduce(view, view, op); }
  Work do_reduce_scatter(const TensorRef& out, const TensorRef& in) override {
    return start_reduce(out, in, ReduceOp::kSum);
  }
  Work do_all_gather(const TensorRef& out, const TensorRef& in) override;
  Work do_broadcast(const TensorRef& view, int root) override {
    return with_open_memory([&] {
      auto requests = collective();
      requests->broadcast(view.data, view.bytes(), root);
      return requests;
    });
  }
  Work do_send(const TensorRef& view, int to) override {
    return with_open_memory([&] {
      auto requests = std::make_unique<MpiRequests>(group_.messages, control_);
      requests->send(view.data, view.bytes(), to, 0);
      return requests;
    });
  }
  Work do_receive(const TensorRef& view, int from) override {
    return with_open_memory([&] {
      auto requests = std::make_unique<MpiRequests>(group_.messages, control_);
      requests->receive(view.data, view.bytes(), from, 0);
      return requests;
    });
  }
  std::vector<std::string> do_all_gather_host(const std::string& text) override;
  std::unique_ptr<Communicator> do_split(const std::vector<int>& members) override;
  void watch(const std::shared_ptr<OpenChannels>& channels) override { control_.watch_channels(channels); }
  void give_up() noexcept override { control_.give_up(); }

 private:
  // Members start collectives in the same order, so they find the same tags.
  int next_tag() {
    constexpr int kCollectivesAtOnce = 16000;
    calls_ = (calls_ + 1) % kCollectivesAtOnce;
    return 2 * calls_;
  }
  std::unique_ptr<MpiRequests> collective() const {
    return std::make_unique<MpiRequests>(group_.collectives, control_);
  }
  template <class Begin>
  Work with_open_memory(const Begin& begin) {
    auto work = std::make_unique<OpenMemoryWork>(memory());
    work->begin(begin());
    return work;
  }
  Work start_reduce(const TensorRef& out, const TensorRef& in, ReduceOp op) {
    check(in.dtype != DType::kU8 && in.dtype != DType::kU16, "values that are reduced are numbers");
    return with_open_memory([&] {
      return std::make_unique<ReduceWork>([this] { return collective(); }, rank_, size_, next_tag(), scratch_, out, in,
                                          op);
    });
  }

  const MpiGroup group_;
  ControlPlane& control_;
  int rank_ = 0, size_ = 1;
  int calls_ = 0;
  ScratchPool scratch_;
};

std::unique_ptr<Pending::Work> MpiCommunicator::do_all_gather(const TensorRef& out, const TensorRef& in) {
  return with_open_memory([&] {
    auto requests = collective();
    const int tag = next_tag();
    const std::int64_t bytes = in.bytes();
    const auto part = [&](int rank) { return static_cast<std::byte*>(out.data) + rank * bytes; };
    if (part(rank_) != in.data) std::memcpy(part(rank_), in.data, static_cast<std::size_t>(bytes));
    for (int step = 1; step < size_; ++step) {
      const int from = (rank_ + step) % size_, to = (rank_ + size_ - step) % size_;
      requests->receive(part(from), bytes, from, tag);
      requests->send(in.data, bytes, to, tag);
    }
    return requests;
  });
}

std::vector<std::string> MpiCommunicator::do_all_gather_host(const std::string& text) {
  std::vector<std::string> texts(static_cast<std::size_t>(size_));
  texts[static_cast<std::size_t>(rank_)] = text;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size_));
  const auto own_length = static_cast<std::int64_t>(text.size());
  const int tag = next_tag();
  const auto sizes = collective();
  const auto contents = collective();
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    sizes->receive(&lengths[static_cast<std::size_t>(other)], sizeof(std::int64_t), other, tag);
    sizes->send(&own_length, sizeof(std::int64_t), other, tag);
  }
  sizes->wait();
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    std::string& theirs = texts[static_cast<std::size_t>(other)];
    theirs.resize(static_cast<std::size_t>(lengths[static_cast<std::size_t>(other)]));
    contents->receive(theirs.data(), static_cast<std::int64_t>(theirs.size()), other, tag + 1);
    contents->send(text.data(), own_length, other, tag + 1);
  }
  contents->wait();
  return texts;
}

std::unique_ptr<Communicator> MpiCommunicator::do_split(const std::vector<int>& members) {
  MPI_Group everyone = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(group_.collectives, &everyone), "list a group");
  check_mpi(MPI_Group_incl(everyone, static_cast<int>(members.size()), members.data(), &chosen), "choose members");
  MpiGroup part;
  check_mpi(MPI_Comm_create_group(group_.collectives, chosen, 0, &part.collectives), "make a group");
  check_mpi(MPI_Comm_create_group(group_.collectives, chosen, 1, &part.messages), "make a group");
  MPI_Group_free(&everyone);
  MPI_Group_free(&chosen);
  return std::make_unique<MpiCommunicator>(part, control_);
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_world(ControlPlane& control) {
  const Place::Waits waits({.name = "the start of MPI"});
  MpiGroup world;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world.collectives), "copy its world");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world.messages), "copy its world");
  return std::make_unique<MpiCommunicator>(world, control);
}

}  // namespace teratron
