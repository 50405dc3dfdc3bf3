// Ranks that are processes without MPI: host exchanges go through the control plane, tensors through the channels of
// their devices; everything else is refused.
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "comm/control/control_plane.h"
#include "comm/control_planes.h"
#include "comm/late_device.h"
#include "comm/run_threads.h"
#include "comm/trial.h"

namespace teratron::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> run_ranks_by_address(int size, const std::function<void(Communicator&)>& body) {
  return run_job(size, [&](ControlPlane& control, int rank) { body(*make_control_world(control, rank, size)); });
}

LateDevice device_of(const Communicator& world) {
  return LateDevice(static_cast<std::uint32_t>(world.rank()), fmt::format("device {}", world.rank()));
}

TEST(ControlCommunicator, CollectivesOfDevicesWithChannelsAreExact) {
  for (const int size : {2, 3, 4}) {
    const auto errors = run_ranks_by_address(size, [](Communicator& world) {
      LateDevice device = device_of(world);
      world.attach(&device);
      run_all_trials(world, everyone(world.size()), device, {DType::kF32, DType::kBF16, DType::kU8}, {0, 1, 61, 1031});
      for (std::uint32_t seed = 0; seed < 3; ++seed) run_random_program(world, device, seed, 30);
      EXPECT_GT(device.exchanges(), 0);
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST(ControlCommunicator, MessagesOfARingAndOthersTakeChannels) {
  const auto errors = run_ranks_by_address(4, [](Communicator& world) {
    LateDevice device = device_of(world);
    run_random_messages(world, device, 7, 40);
    const std::unique_ptr<Communicator> forth = world.split(0, world.rank());
    forth->attach(&device, Communicator::Uses::kMessagesToNext);
    for (const int root : {1, 2}) {  // two and three places on
      run_trial(*forth, everyone(4), device, {.collective = Collective::kSend, .elements = 1031, .root = root});
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ControlCommunicator, CollectivesMayFollowHostExchanges) {
  const auto errors = run_ranks_by_address(3, [](Communicator& world) {
    LateDevice device = device_of(world);
    world.attach(&device, Communicator::Uses::kHostExchanges);
    EXPECT_EQ(device.exchanges(), 0);
    world.attach(&device);
    run_trial(world, everyone(3), device, {.collective = Collective::kAllReduce, .elements = 1031});
    EXPECT_GT(device.exchanges(), 0);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ControlCommunicator, DevicesWithoutChannelsAreRefusedWithWhatToDo) {
  for (const bool share_a_device : {true, false}) {
    const auto errors = run_ranks_by_address(3, [&](Communicator& world) {
      LateDevice device(0, share_a_device ? "one" : world.rank() == 1 ? "" : device_of(world).memory_name());
      world.attach(&device);
    });
    EXPECT_THAT(errors,
                Each(HasSubstr("environment: these 3 processes cannot exchange the memory of their GPUs: NCCL is "
                               "missing on one of them, or two share a GPU")));
  }
}

TEST(ControlCommunicator, MemoryOfHostsIsRefused) {
  const auto errors = run_ranks_by_address(2, [](Communicator& world) {
    const auto memory = make_cpu_backend();
    world.attach(memory.get());
  });
  EXPECT_THAT(errors, Each(HasSubstr("user: processes that were started without MPI move the memory of GPUs alone")));
}

TEST(ControlCommunicator, HostExchangesReachTheGroupsOfASplit) {
  const auto errors = run_ranks_by_address(4, [](Communicator& world) {
    for (int colors = 1; colors <= 3; ++colors) {
      const auto group = world.split(world.rank() % colors, -world.rank());
      double sums[] = {static_cast<double>(world.rank()), 1.0};
      group->all_reduce_host(sums);
      double expected = 0;
      for (int rank = world.rank() % colors; rank < 4; rank += colors) expected += rank;
      if (sums[0] != expected || sums[1] != group->size()) throw std::runtime_error("a host sum is wrong");
      const std::vector<int> ranks = group->all_gather_host(world.rank());
      if (!std::ranges::is_sorted(ranks, std::greater<>())) throw std::runtime_error("ranks are in another order");
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

}  // namespace
}  // namespace teratron::testing
