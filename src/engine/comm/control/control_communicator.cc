#include "comm/control/control_plane.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

class ControlCommunicator final : public Communicator {
 public:
  ControlCommunicator(ControlPlane& control, std::string name, int rank, int size)
      : control_(control), name_(std::move(name)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  using Work = std::unique_ptr<Pending::Work>;

  bool moves_host_memory() const override { return false; }
  Work do_all_reduce(const TensorRef&, ReduceOp) override { refuse(); }
  Work do_all_gather(const TensorRef&, const TensorRef&) override { refuse(); }
  Work do_reduce_scatter(const TensorRef&, const TensorRef&) override { refuse(); }
  Work do_broadcast(const TensorRef&, int) override { refuse(); }
  Work do_send(const TensorRef&, int) override { refuse(); }
  Work do_receive(const TensorRef&, int) override { refuse(); }
  std::vector<std::string> do_all_gather_host(const std::string& text) override {
    return control_.all_gather(fmt::format("{} {}", name_, exchanges_++), rank_, size_, text);
  }
  std::unique_ptr<Communicator> do_split(const std::vector<int>& members) override;
  void watch(const std::shared_ptr<OpenChannels>& channels) override { control_.watch_channels(channels); }
  void give_up() noexcept override { control_.give_up(); }

 private:
  [[noreturn]] static void refuse() { throw InternalError("processes without MPI move the memory of devices alone"); }

  ControlPlane& control_;
  const std::string name_;  // the same on its members, and no other group of a member's has it
  const int rank_, size_;
  std::int64_t exchanges_ = 0, splits_ = 0;
};

std::unique_ptr<Communicator> ControlCommunicator::do_split(const std::vector<int>& members) {
  const auto rank = std::ranges::find(members, rank_) - members.begin();
  return std::make_unique<ControlCommunicator>(control_, fmt::format("{}/{}.{}", name_, splits_++, members.front()),
                                               static_cast<int>(rank), static_cast<int>(members.size()));
}

}  // namespace

std::unique_ptr<Communicator> make_control_world(ControlPlane& control, int rank, int size) {
  return std::make_unique<ControlCommunicator>(control, "world", rank, size);
}

}  // namespace teratron
