// Whether ranks' plans fit into the devices that they have or share, and the table of them.
#include "runtime/memory_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/host/resources.h"
#include "comm/far_memory.h"
#include "comm/run_threads.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Device final : public FarMemory {
 public:
  Device(std::string name, std::int64_t bytes_left) : name_(std::move(name)), bytes_left_(bytes_left) {}
  std::string memory_name() const override { return name_; }
  std::string processor() const override { return "a card"; }
  std::int64_t bytes_left() override { return bytes_left_; }

 private:
  const std::string name_;
  const std::int64_t bytes_left_;
};

// Error of each of three ranks, of which the first two share a device; empty: it fits.
std::vector<std::string> errors_of(const std::vector<std::int64_t>& needed, std::int64_t left) {
  std::vector<RankMemory> plans;
  for (const std::int64_t bytes : needed) plans.push_back({.arena = bytes});
  std::vector<std::string> errors(needed.size());
  run_threads(3, [&](Communicator& world) {
    Device device(world.rank() < 2 ? "one" : "another", left);
    try {
      require_memory(plans, device, world, 3, [](const MemoryRoom& room) {
        return fmt::format("room of {} for {} of {}", room.bytes, room.ranks, room.has_all_ranks ? "all" : "some");
      });
    } catch (const EnvironmentError& error) {
      errors[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  return errors;
}

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(DeviceMemory, IsThatOfAllRanksThatShareIt) {
  EXPECT_THAT(errors_of({4 * kGiB, 4 * kGiB, 8 * kGiB}, 8 * kGiB), ::testing::Each(""));
  const std::vector<std::string> errors = errors_of({4 * kGiB, 5 * kGiB, 8 * kGiB}, 8 * kGiB);
  EXPECT_THAT(errors[0], AllOf(HasSubstr("9.00 GiB of memory are needed on a card by 2 ranks, which has 8.00 GiB left"),
                               HasSubstr(fmt::format("; room of {} for 2 of some", 8 * kGiB))));
  EXPECT_EQ(errors[1], "");  // reported once
  EXPECT_EQ(errors[2], "");
}

TEST(DeviceMemory, BelongsToARankThatIsAlone) {
  const std::vector<std::string> errors = errors_of({1, 2, kGiB + 1}, kGiB);
  EXPECT_EQ(errors[0] + errors[1], "");
  EXPECT_THAT(errors[2], AllOf(HasSubstr("needed on a card, which"), Not(HasSubstr("by"))));
}

// Launchers start a process for each rank, and mostly several on a host.
TEST(HostMemory, IsThatOfAllProcessesOfTheHost) {
  const std::int64_t left = *available_host_memory();
  const std::vector<RankMemory> plans(3, {.arena = left / 2});
  std::vector<std::string> errors(plans.size());
  std::vector<std::optional<std::int64_t>> rooms(plans.size());
  run_threads(3, [&](Communicator& world) {
    const std::unique_ptr<Backend> backend = make_cpu_backend();
    const auto self = static_cast<std::size_t>(world.rank());
    rooms[self] = room_of_rank(*backend, world, /*ranks_in_this_process=*/1);
    try {
      require_memory(plans, *backend, world, /*ranks_in_this_process=*/1, [](const MemoryRoom& room) {
        return fmt::format("room for {} of {}", room.ranks, room.has_all_ranks ? "all" : "some");
      });
    } catch (const EnvironmentError& error) {
      errors[self] = error.what();
    }
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("of memory (3 ranks of "), HasSubstr("; room for 3 of all")));
  EXPECT_EQ(errors[1] + errors[2], "");  // reported once
  EXPECT_LT(*rooms[0], left / 2);
  EXPECT_EQ(rooms[0], rooms[2]);
}

TEST(MemoryTable, CountsWhatLibrariesHaveTakenBesideTheArena) {
  const std::string table = memory_table(std::vector<RankMemory>{{.of_kind = {kGiB}, .arena = kGiB, .beside = kGiB}});
  EXPECT_THAT(table, AllOf(HasSubstr("libraries"), HasSubstr("2.00 GiB")));
  EXPECT_THAT(memory_table(std::vector<RankMemory>{{.of_kind = {kGiB}, .arena = kGiB}}), Not(HasSubstr("libraries")));
}

TEST(MemoryTable, CountsWhatThreadsTakeToCompute) {
  const std::vector<RankMemory> ranks = {{.of_kind = {kGiB}, .arena = kGiB, .threads = 2 * kGiB}};
  EXPECT_THAT(memory_table(ranks), AllOf(HasSubstr("threads"), HasSubstr("3.00 GiB")));
  EXPECT_EQ(ranks.front().needed(), 3 * kGiB);
  EXPECT_THAT(memory_table(std::vector<RankMemory>{{.of_kind = {kGiB}, .arena = kGiB}}), Not(HasSubstr("threads")));
}

}  // namespace
}  // namespace teratron::testing
