#include "base/host/resources.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "base/host/threads.h"
#include "base/system_files.h"

namespace teratron::testing {
namespace {

class ProcessorQuota : public SystemFiles {
 protected:
  int quota() const { return processor_quota(root_.path()); }
};

TEST_F(ProcessorQuota, IsNoneWhereThereAreNoControlGroups) { EXPECT_EQ(quota(), 0); }

TEST_F(ProcessorQuota, IsTheSmallestOfTheGroupAndThoseAroundInVersion2) {
  write("proc/self/cgroup", "0::/slice/job");
  write("sys/fs/cgroup/slice/job/cpu.max", "max 100000");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/slice/job/cpu.max", "800000 100000");
  EXPECT_EQ(quota(), 8);
  write("sys/fs/cgroup/slice/cpu.max", "150000 100000");
  EXPECT_EQ(quota(), 2) << "rounded up";
  write("sys/fs/cgroup/cpu.max", "5000 100000");
  EXPECT_EQ(quota(), 1) << "never none";
}

TEST_F(ProcessorQuota, LiesWhereAContainersGroupIsMounted) {
  write("proc/self/cgroup", "0::/kubepods/pod7/container9");  // the host's path, which is not seen inside
  write("sys/fs/cgroup/cpu.max", "400000 100000");
  EXPECT_EQ(quota(), 4);
}

TEST_F(ProcessorQuota, IsThatOfTheCpuControllerInVersion1) {
  write("proc/self/cgroup", "5:memory:/slurm\n4:cpu,cpuacct:/slurm/job\n3:cpuset:/");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/job/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu,cpuacct/slurm/job/cpu.cfs_quota_us", "300000");
  EXPECT_EQ(quota(), 3);
}

TEST(Processors, AreThoseThatTheProcessIsBoundTo) {
  std::thread([] {  // whose binding ends with it
    cpu_set_t all, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
    EXPECT_EQ(bound_processors(), CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(bound_processors(), 1);
    EXPECT_EQ(usable_processors(), 1);
  })
      .join();
}

// A system that could have 4,096 processors takes sets with room for all of them alone.
TEST(Processors, MayBeMoreThanTheSystemsUsualSetHasRoomFor) {
  const auto system = [](pid_t, std::size_t bytes, cpu_set_t* set) {
    errno = EINVAL;
    if (bytes < 4096 / 8) return -1;
    for (const int processor : {7, 1023, 1024, 4095}) CPU_SET_S(processor, bytes, set);
    return 0;
  };
  EXPECT_EQ(own_processors(system), (std::vector<int>{7, 1023, 1024, 4095}));
  EXPECT_TRUE(own_processors([](pid_t, std::size_t, cpu_set_t*) {
                errno = EINVAL;
                return -1;
              }).empty());
}

TEST(Processors, AreTheUsualThreadsUnlessOpenMpsVariableSays) {
  EXPECT_EQ(usual_threads(), threads_asked_for(std::getenv("OMP_NUM_THREADS")));
  std::thread([] { EXPECT_EQ(thread_count(), usual_threads()); }).join();
  EXPECT_EQ(threads_asked_for("3"), 3);
  EXPECT_EQ(threads_asked_for("3,2"), 3) << "OpenMP's form for nested levels";
  EXPECT_EQ(threads_asked_for("2147483647"), 4096) << "no more than there may be";
  for (const char* const none : {static_cast<const char*>(nullptr), "", "0", "-2", "many", "99999999999"}) {
    EXPECT_EQ(threads_asked_for(none), usable_processors());
  }
}

}  // namespace
}  // namespace teratron::testing
