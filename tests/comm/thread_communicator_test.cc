// Ranks as threads: every collective exact, failures that wake everyone, memory opened where it is touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>

#include "base/host/threads.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "comm/lost_rank.h"
#include "comm/mesh.h"
#include "comm/run_threads.h"
#include "comm/trial.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ThreadRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadRanks, ::testing::Values(1, 2, 3, 4, 8), ::testing::PrintToStringParamName());

// Sanitizers take ten times as long, and see as much in fewer elements.
#ifdef TERATRON_SANITIZED
constexpr std::int64_t kMany = 4009, kLarge = 1 << 18;
#else
constexpr std::int64_t kMany = 40009, kLarge = 1 << 20;
#endif

TEST_P(ThreadRanks, EveryCollectiveIsExactForEveryDTypeAndCount) {
  run_threads(GetParam(), [](Communicator& world) {
    const auto memory = make_cpu_backend();
    run_all_trials(world, everyone(world.size()), *memory, kAllDTypes, {0, 1, 2, 61, 64, 1031, kMany});
  });
}

TEST_P(ThreadRanks, LargeViewsAreExact) {
  run_threads(GetParam(), [](Communicator& world) {
    const auto memory = make_cpu_backend();
    run_all_trials(world, everyone(world.size()), *memory, {DType::kF32, DType::kBF16}, {kLarge / world.size() + 1});
  });
}

TEST_P(ThreadRanks, EveryGroupOfASplitIsExact) {
  run_threads(GetParam(), [](Communicator& world) {
    const auto memory = make_cpu_backend();
    for (int colors = 1; colors <= world.size(); ++colors) {
      const auto group = world.split(world.rank() % colors, -world.rank());
      const std::vector<int> members = group->all_gather_host(world.rank());
      ASSERT_EQ(members[static_cast<std::size_t>(group->rank())], world.rank());
      ASSERT_TRUE(std::is_sorted(members.rbegin(), members.rend()));
      run_all_trials(*group, members, *memory, {DType::kF32, DType::kU8}, {0, 1, 257});
    }
  });
}

TEST_P(ThreadRanks, RandomProgramsOfCollectivesAreExact) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    run_threads(GetParam(), [&](Communicator& world) {
      const auto memory = make_cpu_backend();
      run_random_program(world, *memory, seed, 40);
    });
  }
}

TEST_P(ThreadRanks, MemoryIsOpenExactlyWhereItIsTouched) {
  run_threads(GetParam(), [&](Communicator& world) {
    const auto memory = make_cpu_backend({.guard_memory = true});  // each rank has its own
    world.attach(memory.get());
    run_all_trials(world, everyone(world.size()), *memory, {DType::kF32}, {1, 1031});
    run_random_program(world, *memory, 7, 40);
  });
}

TEST_P(ThreadRanks, RanksShareTheThreads) {
  const int before = thread_count();
  set_thread_count(7);
  std::atomic<int> threads = 0, most = 0, least = 100;
  run_threads(GetParam(), [&](Communicator&) {
    threads += thread_count();
    for (int seen = most; seen < thread_count() && !most.compare_exchange_weak(seen, thread_count());) {
    }
    for (int seen = least; seen > thread_count() && !least.compare_exchange_weak(seen, thread_count());) {
    }
  });
  EXPECT_EQ(threads, std::max(7, GetParam()));
  EXPECT_LE(most - least, 1);
  EXPECT_EQ(thread_count(), 7);
  set_thread_count(before);
}

TEST(ThreadCommunicator, ManyMoreRanksThanCoresDoNotCrawl) {
  run_threads(32, [](Communicator& world) {
    for (int round = 0; round < 100; ++round) world.barrier();
  });
}

TEST(ThreadCommunicator, HostReductionsAndTextsReachEveryone) {
  run_threads(3, [](Communicator& world) {
    std::vector<double> values = {1.0 * world.rank(), 0.25, -1.0 * world.rank()};
    world.all_reduce_host(values);
    EXPECT_EQ(values, (std::vector<double>{3, 0.75, -3}));
    values = {1.0 * world.rank(), -1.0 * world.rank()};
    world.all_reduce_host(values, ReduceOp::kMax);
    EXPECT_EQ(values, (std::vector<double>{2, 0}));
    const std::string mine(static_cast<std::size_t>(world.rank()), 'x');
    EXPECT_EQ(world.all_gather_host(mine), (std::vector<std::string>{"", "x", "xx"}));
    EXPECT_EQ(world.traffic().counts, Traffic().counts);
  });
}

// Input of a rank: values of several sizes, with a gap between them in memory.
struct Brought {
  std::array<std::uint8_t, 3> bytes{};
  double number = 0;
  std::int32_t count = 0;
  bool operator==(const Brought&) const = default;
};

Brought brought_by(int rank, std::uint64_t seed) {
  RandomSequence random(RandomStream{.seed = seed, .stream = static_cast<std::uint32_t>(rank)});
  const auto byte = [&] { return static_cast<std::uint8_t>(random.below(256)); };
  return {{byte(), byte(), byte()}, random.uniform() - 0.5, static_cast<std::int32_t>(random.next_u32())};
}

TEST(ThreadCommunicator, HostValuesOfAnyTypeReachEveryRankOfAGroupInItsOrder) {
  RandomSequence random(RandomStream{.seed = 8});
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    const int ranks = 1 + static_cast<int>(random.below(9)), colors = 1 + static_cast<int>(random.below(3));
    run_threads(ranks, [&](Communicator& world) {
      const auto group = world.split(world.rank() % colors, -world.rank());
      std::vector<Brought> expected;  // the last rank of the color first
      for (int rank = ranks - 1; rank >= 0; --rank) {
        if (rank % colors == world.rank() % colors) expected.push_back(brought_by(rank, trial));
      }
      EXPECT_EQ(group->all_gather_host(brought_by(world.rank(), trial)), expected);
      EXPECT_EQ(world.all_gather_host(world.rank()), everyone(ranks));
    });
  }
}

TEST(ThreadCommunicator, CallsAndBytesAreCountedByKind) {
  run_threads(2, [](Communicator& world) {
    const auto memory = make_cpu_backend();
    const Tensor ten(*memory, DType::kF32, {10}), twenty(*memory, DType::kF32, {20}), none(*memory, DType::kF32, {0});
    memory->fill_zero(ten);
    memory->fill_zero(twenty);
    world.all_reduce(ten);
    world.all_reduce(twenty, ReduceOp::kMax);
    world.all_reduce(none);
    world.all_gather(twenty, ten);
    world.reduce_scatter(ten, twenty);
    world.broadcast(ten, 1);
    Pending message = world.rank() == 0 ? world.start_send(ten, 1) : world.start_receive(ten, 0);
    message.wait();
    using Count = Traffic::Count;
    EXPECT_EQ(world.traffic()[Collective::kAllReduce], (Count{2, 120}));
    EXPECT_EQ(world.traffic()[Collective::kAllGather], (Count{1, 80}));
    EXPECT_EQ(world.traffic()[Collective::kReduceScatter], (Count{1, 80}));
    EXPECT_EQ(world.traffic()[Collective::kBroadcast], (Count{1, 40}));
    EXPECT_EQ(world.traffic()[Collective::kSend], world.rank() == 0 ? (Count{1, 40}) : Count{});
    EXPECT_EQ(world.traffic()[Collective::kReceive], world.rank() == 1 ? (Count{1, 40}) : Count{});
  });
}

TEST(ThreadCommunicator, MaximaLetNaNThrough) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    for (int with_nan = 0; with_nan < 3; ++with_nan) {
      run_threads(3, [&](Communicator& world) {
        std::vector<double> value = {world.rank() == with_nan ? std::nan("") : 1.0};
        world.all_reduce_host(value, ReduceOp::kMax);
        EXPECT_TRUE(std::isnan(value[0]));
        const auto memory = make_cpu_backend();
        const Tensor view(*memory, dtype, {3});
        const double f64 = value[0] = world.rank() == with_nan ? std::nan("") : 1.0;
        const auto f32 = static_cast<float>(f64);
        const std::uint16_t bf16 = float_to_bf16(f32), f16 = float_to_f16(f32);
        const void* const bits = dtype == DType::kF64    ? static_cast<const void*>(&f64)
                                 : dtype == DType::kF32  ? static_cast<const void*>(&f32)
                                 : dtype == DType::kBF16 ? static_cast<const void*>(&bf16)
                                                         : static_cast<const void*>(&f16);
        for (int i = 0; i < 3; ++i) memory->upload(view.ref().slice(0, i, i + 1), bits);
        world.all_reduce(view, ReduceOp::kMax);
        double result = 0;
        memory->download(&result, view.ref().slice(0, 1, 2));
        std::uint64_t came = std::bit_cast<std::uint64_t>(result);
        const bool is_nan = dtype == DType::kF64    ? std::isnan(result)
                            : dtype == DType::kF32  ? std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(came)))
                            : dtype == DType::kBF16 ? std::isnan(bf16_to_float(static_cast<std::uint16_t>(came)))
                                                    : std::isnan(f16_to_float(static_cast<std::uint16_t>(came)));
        EXPECT_TRUE(is_nan) << name_of(dtype) << " from rank " << with_nan;
      });
    }
  }
}

struct OwnFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Rank `failing` throws; what the others wait for is up to `wait`. They must all hear of it, and run_ranks too.
void expect_failure_reaches_all(int ranks, int failing, const Body& wait) {
  std::atomic<int> told = 0;
  EXPECT_THROW(run_threads(ranks,
                           [&](Communicator& world) {
                             if (world.rank() == failing) {
                               note_activity({.name = "forward of layer 3"});
                               throw OwnFailure("the disk is full");
                             }
                             try {
                               wait(world);
                             } catch (const LostRank& lost) {
                               EXPECT_EQ(lost.rank(), failing);
                               EXPECT_THAT(lost.what(),
                                           AllOf(HasSubstr(fmt::format("rank {}", failing)), HasSubstr("here"),
                                                 HasSubstr("forward of layer 3"), HasSubstr("the disk is full")));
                               ++told;
                               throw;
                             }
                           }),
               OwnFailure);
  EXPECT_EQ(told, ranks - 1);
}

TEST(ThreadFailure, WakesEveryCollective) {
  const std::vector<Body> waits = {
      [](Communicator& world) { world.barrier(); },
      [](Communicator& world) { world.all_gather_host("x"); },
      [](Communicator& world) { world.split(0, 0); },
      [](Communicator& world) {
        const auto memory = make_cpu_backend();
        const Tensor view(*memory, DType::kF32, {100});
        world.all_reduce(view);
      },
      [](Communicator& world) {
        const auto memory = make_cpu_backend();
        const Tensor out(*memory, DType::kF32, {300}), in(*memory, DType::kF32, {100});
        world.all_gather(out, in);
      },
      [](Communicator& world) {
        const auto memory = make_cpu_backend();
        const Tensor in(*memory, DType::kF32, {300}), out(*memory, DType::kF32, {100});
        world.reduce_scatter(out, in);
      },
      [](Communicator& world) {
        const auto memory = make_cpu_backend();
        const Tensor view(*memory, DType::kF32, {100});
        world.broadcast(view, 0);
      },
      [](Communicator& world) {
        const auto memory = make_cpu_backend();
        const Tensor view(*memory, DType::kF32, {100});
        world.start_send(view, 1).wait();
      },
      [](Communicator& world) {
        const auto memory = make_cpu_backend();
        const Tensor view(*memory, DType::kF32, {100});
        world.start_receive(view, 1).wait();
      },
  };
  for (const Body& wait : waits) {
    for (int repeat = 0; repeat < 20; ++repeat) expect_failure_reaches_all(3, 1, wait);
  }
}

TEST(ThreadFailure, ReachesGroupsThatTheFailedRankIsNotIn) {
  std::atomic<int> told = 0;
  EXPECT_THROW(run_threads(4,
                           [&](Communicator& world) {
                             const auto group = world.split(world.rank() / 2, 0);
                             if (world.rank() == 0) throw OwnFailure("gone");
                             if (world.rank() == 1) return group->barrier();
                             while (true) {  // this group is whole; it hears of the failure all the same
                               try {
                                 group->barrier();
                               } catch (const LostRank& lost) {
                                 EXPECT_EQ(lost.rank(), 0);
                                 ++told;
                                 throw;
                               }
                             }
                           }),
               OwnFailure);
  EXPECT_EQ(told, 2);
}

TEST(ThreadFailure, ComesBetweenStartAndWait) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    EXPECT_THROW(run_threads(3,
                             [&](Communicator& world) {
                               const auto memory = make_cpu_backend();
                               const Tensor view(*memory, DType::kF32, {5000}), other(*memory, DType::kF32, {5000});
                               Pending reduced = world.start_all_reduce(view);
                               const int next = (world.rank() + 1) % 3, last = (world.rank() + 2) % 3;
                               Pending sent = world.start_send(other, next);
                               const Tensor place(*memory, DType::kF32, {5000});
                               Pending received = world.start_receive(place, last);
                               if (world.rank() == repeat % 3) throw OwnFailure("in between");
                               received.wait();
                               sent.wait();
                               reduced.wait();
                             }),
                 OwnFailure);
  }
}

TEST(ThreadFailure, ARankThatEndsEarlyIsLost) {
  try {
    run_threads(3, [](Communicator& world) {
      if (world.rank() != 2) world.barrier();
    });
    FAIL() << "nobody noticed";
  } catch (const LostRank& lost) {
    EXPECT_EQ(lost.rank(), 2);
    EXPECT_THAT(lost.what(), HasSubstr("it ended while rank"));
  }
  const auto memory = make_cpu_backend();
  EXPECT_THROW(run_threads(2,
                           [&](Communicator& world) {
                             const Tensor view(*memory, DType::kF32, {1});
                             if (world.rank() == 0) world.start_receive(view, 1).wait();
                           }),
               LostRank);
}

TEST(ThreadFailure, DifferentCallsAreNamed) {
  EXPECT_THAT(message_of<InternalError>([&] {
                run_threads(2, [](Communicator& world) {
                  const auto memory = make_cpu_backend();
                  const Tensor view(*memory, DType::kF32, {world.rank() == 0 ? 8 : 9});
                  world.all_reduce(view);
                });
              }),
              AllOf(HasSubstr("all-reduce of 8 f32"), HasSubstr("all-reduce of 9 f32")));
}

TEST(MeshGroups, PutTensorRanksInnermostAndDataRanksOutermost) {
  run_threads(8, [](Communicator& world) {
    const Mesh mesh = make_mesh(world, {.tensor = 2, .pipeline = 2, .data = 2});
    EXPECT_EQ(mesh.shape(), (MeshShape{2, 2, 2}));
    EXPECT_EQ(world.rank(), (mesh.data->rank() * 2 + mesh.pipeline->rank()) * 2 + mesh.tensor->rank());
    const int rank = world.rank();
    EXPECT_EQ(mesh.tensor->all_gather_host(world.rank()), (std::vector<int>{rank / 2 * 2, rank / 2 * 2 + 1}));
    EXPECT_EQ(mesh.data->all_gather_host(world.rank()), (std::vector<int>{rank % 4, rank % 4 + 4}));
    EXPECT_EQ(mesh.model->size(), 4);
  });
}

}  // namespace
}  // namespace teratron::testing
