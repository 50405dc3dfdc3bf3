#include "base/host/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace teratron::testing {
namespace {

TEST(ParallelFor, CoversEveryIndexOnceInRangesOfTheGrain) {
  for (const std::int64_t count : {0, 1, 7, 8, 9, 1000}) {
    for (const std::int64_t grain : {1, 3, 8, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      std::atomic<bool> ragged = false;
      parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        if (begin % grain != 0 || begin >= end || (end - begin != grain && end != count)) ragged = true;
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      EXPECT_FALSE(ragged) << count << " by " << grain;
      for (const auto& visited : visits) ASSERT_EQ(visited, 1) << count << " by " << grain;
    }
  }
}

TEST(ParallelFor, RethrowsWhatItsBodyThrows) {
  for (const int threads : {1, 4}) {
    const int before = thread_count();
    set_thread_count(threads);
    const auto work = [](std::int64_t begin, std::int64_t) {
      if (begin == 7) throw std::runtime_error("seven");
    };
    EXPECT_THROW(parallel_for(20, 1, work), std::runtime_error) << threads;
    set_thread_count(before);
  }
}

// Each of several threads that start loops, as ranks do, has threads of its own number, more than the machine has
// processors too.
TEST(ParallelFor, RunsOnAsManyThreadsAsItsCallerHas) {
  const auto threads_of_a_loop = [](int threads) {
    set_thread_count(threads);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::latch all(threads);
    parallel_for(threads, 1, [&](std::int64_t, std::int64_t) {
      all.arrive_and_wait();  // which ends only if the ranges run at a time
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    return static_cast<int>(seen.size());
  };
  std::vector<std::jthread> ranks;
  for (const int threads : {1, 2, 3, 5}) {
    ranks.emplace_back([&, threads] { EXPECT_EQ(threads_of_a_loop(threads), threads); });
    ranks.back().join();
  }
}

TEST(ParallelFor, MayBeNested) {
  std::atomic<int> visits = 0;
  parallel_for(10, 1,
               [&](std::int64_t, std::int64_t) { parallel_for(10, 1, [&](std::int64_t, std::int64_t) { ++visits; }); });
  EXPECT_EQ(visits, 100);
}

TEST(Threads, ALackOfThemIsKnownFromOtherErrors) {
  EXPECT_TRUE(is_lack_of_threads(std::system_error(EAGAIN, std::generic_category())));
  EXPECT_TRUE(is_lack_of_threads(std::runtime_error("pthread_create has failed: Resource temporarily unavailable")));
  EXPECT_FALSE(is_lack_of_threads(std::system_error(ENOENT, std::generic_category())));
  EXPECT_FALSE(is_lack_of_threads(std::runtime_error("anything else")));
}

}  // namespace
}  // namespace teratron::testing
