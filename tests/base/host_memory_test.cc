#include "base/host/resources.h"

#include <gtest/gtest.h>

#include "base/system_files.h"

namespace teratron::testing {
namespace {

class HostMemory : public SystemFiles {
 protected:
  std::optional<std::int64_t> available() const { return available_host_memory(root_.path()); }
};

TEST_F(HostMemory, IsUnknownWhereTheSystemDoesNotSay) { EXPECT_EQ(available(), std::nullopt); }

TEST_F(HostMemory, IsWhatTheMachineHasAvailable) {
  write("proc/meminfo", "MemTotal:  900 kB\nMemFree:  100 kB\nMemAvailable:  500 kB");
  EXPECT_EQ(available(), 500 * 1024);
}

TEST_F(HostMemory, IsWhatTheTightestGroupLeaves) {
  write("proc/meminfo", "MemAvailable:  500 kB");
  write("proc/self/cgroup", "0::/slice/job");
  write("sys/fs/cgroup/slice/job/memory.max", "max");
  write("sys/fs/cgroup/slice/job/memory.current", "1000");
  EXPECT_EQ(available(), 500 * 1024);
  write("sys/fs/cgroup/slice/memory.max", "300000");
  write("sys/fs/cgroup/slice/memory.current", "120000");
  EXPECT_EQ(available(), 180000);
  write("sys/fs/cgroup/slice/memory.stat", "active_file 9\ninactive_file 20000\nanon 7");
  EXPECT_EQ(available(), 200000) << "file pages can be dropped";
  write("sys/fs/cgroup/slice/memory.current", "900000");
  EXPECT_EQ(available(), 0) << "never less than nothing";
}

TEST_F(HostMemory, IsThatOfTheMemoryControllerInVersion1) {
  write("proc/meminfo", "MemAvailable:  500 kB");
  write("proc/self/cgroup", "5:memory:/slurm/job\n4:cpu,cpuacct:/slurm");
  write("sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "90000");
  write("sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "50000");
  write("sys/fs/cgroup/memory/slurm/job/memory.stat", "inactive_file 1\ntotal_inactive_file 10000");
  EXPECT_EQ(available(), 50000);
}

TEST(HostMemoryOfThisMachine, IsSomething) { EXPECT_GT(available_host_memory().value_or(0), 0); }

}  // namespace
}  // namespace teratron::testing
