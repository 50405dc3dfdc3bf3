// Ranks as threads whose memory is that of devices: copied through the host, reached by the others' devices, or
// exchanged through channels.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>

#include "comm/far_memory.h"
#include "comm/late_device.h"
#include "comm/lost_rank.h"
#include "comm/run_threads.h"
#include "comm/trial.h"

namespace teratron::testing {
namespace {

class ThreadDevices : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadDevices, ::testing::Values(1, 2, 3, 4, 8), ::testing::PrintToStringParamName());

TEST_P(ThreadDevices, ExchangeMemoryThatHostsCannotRead) {
  run_threads(GetParam(), [&](Communicator& world) {
    FarMemory memory;
    world.attach(&memory);
    run_all_trials(world, everyone(world.size()), memory, kAllDTypes, {0, 1, 1031});
    for (std::uint32_t seed = 0; seed < 5; ++seed) run_random_program(world, memory, seed, 40);
  });
}

// Devices that are late at random, so that whatever is not put in order comes out of order; a race, to a sanitizer.
void run_on_late_device(Communicator& world, LateDevice& device) {
  world.attach(&device);
  run_all_trials(world, everyone(world.size()), device, {DType::kF32, DType::kBF16, DType::kU8}, {0, 1, 61, 1031});
  for (std::uint32_t seed = 0; seed < 3; ++seed) run_random_program(world, device, seed, 30);
}

TEST_P(ThreadDevices, QueueWorkOfDevicesInOrder) {
  run_threads(GetParam(), [](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()));
    run_on_late_device(world, device);
    EXPECT_EQ(device.exchanges(), 0);
  });
}

TEST_P(ThreadDevices, DevicesThatReachEachOtherThroughChannelsAloneAddUpTheSame) {
  run_threads(GetParam(), [](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()), fmt::format("device {}", world.rank()));
    run_on_late_device(world, device);
    EXPECT_EQ(device.exchanges() > 0, world.size() > 1);
  });
}

TEST_P(ThreadDevices, MessagesOfARingTakeItsChannels) {
  if (GetParam() == 1) return;
  for (const bool has_channels : {true, false}) {
    run_threads(GetParam(), [&](Communicator& world) {
      LateDevice device(static_cast<std::uint32_t>(world.rank()),
                        has_channels ? fmt::format("device {}", world.rank()) : "");
      run_random_messages(world, device, 7, 60);
      // And the ends of two rings' links are connected.
      EXPECT_EQ(device.exchanges(), has_channels ? 2 * 60 + 4 : 0);
    });
  }
}

TEST(ThreadDeviceRing, OtherMessagesGoThroughTheHost) {
  run_threads(4, [&](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()), fmt::format("device {}", world.rank()));
    const std::unique_ptr<Communicator> forth = world.split(0, world.rank());
    forth->attach(&device, Communicator::Uses::kMessagesToNext);
    for (const int root : {1, 2}) {  // two and three places on
      run_trial(*forth, everyone(4), device, {.collective = Collective::kSend, .elements = 1031, .root = root});
    }
    run_trial(*forth, everyone(4), device, {.collective = Collective::kAllReduce, .elements = 1031});
    EXPECT_EQ(device.exchanges(), 2);  // which connect the ring
  });
}

// As a clock of steps that a training follows on the same groups.
TEST(ThreadDeviceUses, OfAFurtherCallAreAddedToThoseBefore) {
  using Uses = Communicator::Uses;
  for (const bool has_channels : {true, false}) {
    run_threads(3, [&](Communicator& world) {
      LateDevice device(static_cast<std::uint32_t>(world.rank()),
                        has_channels ? fmt::format("device {}", world.rank()) : "");
      const std::unique_ptr<Communicator> group = world.split(0, world.rank());
      const auto expect = [&](const Trial& trial, int exchanges, bool has_summed) {
        run_trial(*group, everyone(3), device, trial);
        EXPECT_EQ(device.exchanges(), has_channels ? exchanges : 0);
        EXPECT_EQ(device.reductions() > 0, has_summed);
      };
      const Trial sum{.collective = Collective::kAllReduce, .elements = 1031},
          message{.collective = Collective::kSend, .elements = 1031};
      group->attach(&device, Uses::kHostExchanges);
      expect(sum, 0, false);
      group->attach(&device, Uses::kCollectives);
      expect(sum, 3, true);  // connecting; there and back
      for (const Uses use : {Uses::kHostExchanges, Uses::kCollectives}) group->attach(&device, use);
      expect(sum, 5, true);
      group->attach(&device, Uses::kMessagesToNext);
      expect(message, 5 + 2 + 2, true);  // connecting to both neighbours; to one, from the other
    });
  }
}

TEST(ThreadDeviceOverlap, ASumIsQueuedWhenTheNextOneStarts) {
  run_threads(3, [&](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()));
    const auto group = world.split(0, world.rank());
    group->attach(&device);
    const std::vector<int> members = everyone(3);
    RunningTrial first(*group, members, device, {.elements = 1031, .salt = 1});
    EXPECT_EQ(device.reductions(), 0);  // the others may not have come
    world.barrier();
    RunningTrial second(*group, members, device, {.elements = 1031, .salt = 2});
    EXPECT_EQ(device.reductions(), 1);
    second.wait_and_check();
    first.wait_and_check();
    EXPECT_EQ(device.reductions(), 2);
  });
}

TEST(ThreadDeviceGroup, SumsLargerThanTheScratchMemoryAreExact) {
  run_threads(3, [&](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()), fmt::format("device {}", world.rank()));
    world.attach(&device);
    const std::int64_t part = LateDevice::kScratchBytes / 2 / 8 + 150;  // of 8 bytes, from two others
    for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter}) {
      const std::int64_t elements = collective == Collective::kAllReduce ? 3 * part : part;
      run_trial(world, everyone(3), device, {.collective = collective, .dtype = DType::kI64, .elements = elements});
    }
    EXPECT_EQ(device.exchanges(), 7);  // connecting; two pieces: there and back for one, there for the other
  });
}

TEST(ThreadDeviceGroup, SumsMoreRanksThanADeviceAddsUpAtOnce) {
  run_threads(CommunicationStream::kMostRanks + 3, [](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()), fmt::format("device {}", world.rank()));
    world.attach(&device);
    for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter}) {
      run_trial(world, everyone(world.size()), device, {.collective = collective, .elements = 131});
    }
    EXPECT_GT(device.exchanges(), 0);
  });
}

TEST(ThreadDeviceGroup, RanksThatShareADeviceExchangeThroughTheHost) {
  run_threads(3, [&](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()), world.rank() == 1 ? "one" : "another");
    world.attach(&device);
    run_all_trials(world, everyone(3), device, {DType::kF32}, {1, 1031});
    EXPECT_EQ(device.exchanges(), 0);
  });
}

// Runs two ranks, each with a device and two tensors that the ranks' group may add. One of them throws in between.
void fail_between_sums(const std::function<void(Communicator& world, Communicator& group, LateDevice& device,
                                                const Tensor& first, const Tensor& second)>& sums) {
  const auto body = [&](Communicator& world) {
    LateDevice device(static_cast<std::uint32_t>(world.rank()));
    const auto group = world.split(0, world.rank());
    group->attach(&device);
    sums(world, *group, device, Tensor(device, DType::kF32, {1000}), Tensor(device, DType::kF32, {1000}));
  };
  EXPECT_THROW(run_threads(2, body), std::runtime_error);
}

TEST(ThreadDeviceFailure, MemoryStaysUntilThoseWhoBeganEarlyAreDoneWithIt) {
  const int before = LateMemory::everyones().touched_released();
  fail_between_sums(
      [&](Communicator& world, Communicator& group, LateDevice& device, const Tensor& first, const Tensor& second) {
        Pending first_sum = group.start_all_reduce(first), second_sum;
        world.barrier();
        if (world.rank() == 0) device.rest_on_streams(std::chrono::milliseconds(50));
        if (world.rank() == 0) second_sum = group.start_all_reduce(second);  // queues the first
        world.barrier();
        if (world.rank() == 1) throw std::runtime_error("fails in between");
        first_sum.wait();
        second_sum.wait();
      });
  EXPECT_EQ(LateMemory::everyones().touched_released(), before);
}

TEST(ThreadDeviceFailure, NobodyBeginsEarlyOnceAMemberHasLeft) {
  fail_between_sums(
      [&](Communicator& world, Communicator& group, LateDevice& device, const Tensor& first, const Tensor& second) {
        if (world.rank() == 1) {
          try {
            const Pending left = group.start_all_reduce(first);
            world.barrier();
            throw std::runtime_error("leaves");
          } catch (const std::runtime_error&) {
            world.barrier();
            world.barrier();
            throw;
          }
        }
        Pending first_sum = group.start_all_reduce(first);
        world.barrier();
        world.barrier();
        Pending second_sum = group.start_all_reduce(second);  // would queue the first
        EXPECT_EQ(device.reductions(), 0);
        world.barrier();
        first_sum.wait();
        second_sum.wait();
      });
}

TEST(ThreadDeviceFailure, InTheMiddleOfWhatAllDoReachesAll) {
  const std::vector<std::function<void(Communicator&, const TensorRef&)>> calls = {
      [](Communicator& world, const TensorRef& view) { world.all_reduce(view); },
      [](Communicator& world, const TensorRef& view) { world.broadcast(view, 0); },
      [](Communicator& world, const TensorRef& view) {  // whoever comes second copies: each has one message
        if (world.rank() < 2)
          return (world.rank() == 0 ? world.start_send(view, 1) : world.start_receive(view, 0)).wait();
        world.barrier();
      }};
  for (const auto& call : calls) {
    std::atomic<int> told = 0, failed = 0;
    EXPECT_THROW(run_threads(3,
                             [&](Communicator& world) {
                               LateDevice device(static_cast<std::uint32_t>(world.rank()));
                               world.attach(&device);
                               const Tensor view(device, DType::kF32, {1000});
                               if (world.rank() < 2) device.fail_from_now_on();
                               try {
                                 call(world, view);
                               } catch (const LostRank&) {
                                 ++told;
                                 throw;
                               } catch (const EnvironmentError&) {
                                 ++failed;
                                 throw;
                               }
                             }),
                 EnvironmentError);
    EXPECT_EQ(told + failed, 3);
    EXPECT_GE(failed, 1);
    EXPECT_GE(told, 1);
  }
}

}  // namespace
}  // namespace teratron::testing
