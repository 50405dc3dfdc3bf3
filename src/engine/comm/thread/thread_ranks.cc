#include "comm/thread/thread_ranks.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "base/host/threads.h"
#include "comm/lost_rank.h"
#include "comm/thread/thread_group.h"
#include "comm/thread/thread_world.h"

namespace teratron {
namespace {

using Body = std::function<void(Communicator& world)>;

void run_rank(const std::shared_ptr<ThreadGroup>& everyone, int rank, int threads, const Body& body) {
  ThreadWorld& world = everyone->world();
  try {
    set_thread_count(threads);
    body(*make_thread_communicator(everyone, rank));
    world.end(rank);
  } catch (const LostRank& lost) {  // the failure of another rank, unless none failed
    world.fail(rank, lost.what(), std::current_exception());
  } catch (const std::exception& error) {
    world.fail(rank, error.what(), std::current_exception());
  } catch (...) {
    world.fail(rank, "an exception without a message", std::current_exception());
  }
}

}  // namespace

void run_thread_ranks(int ranks, const std::string& host, const Body& body) {
  if (ranks == 1) return body(*make_self_communicator());
  const int threads = thread_count();
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  const auto world = std::make_shared<ThreadWorld>(ranks, host);
  const auto everyone = std::make_shared<ThreadGroup>(world, members);
  {
    std::vector<std::jthread> running;
    try {
      for (int rank = 0; rank < ranks; ++rank) {
        const int share = std::max(1, threads / ranks + (rank < threads % ranks ? 1 : 0));
        running.emplace_back([&, rank, share] { run_rank(everyone, rank, share, body); });
      }
    } catch (const std::system_error& error) {
      world->fail(static_cast<int>(running.size()), "its thread could not be started",
                  std::make_exception_ptr(EnvironmentError(
                      fmt::format("cannot start {} ranks as threads: {}; choose fewer", ranks, error.what()))));
    }
  }
  world->rethrow_failure();
}

}  // namespace teratron
