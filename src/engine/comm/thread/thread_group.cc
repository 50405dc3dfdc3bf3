#include "comm/thread/thread_group.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/host/resources.h"
#include "base/host/threads.h"
#include "comm/lost_rank.h"

namespace teratron {
namespace {

using Body = std::function<void(Communicator& world)>;

// A thread that watches the ranks of this process, and ends the process if they stand still.
class ThreadWatch {
 public:
  ThreadWatch(ThreadWorld& world, const WatchSettings& settings,
              std::function<void(const std::string& message)> end_process);

 private:
  void run(const std::stop_token& stop);
  void look(Watch::Clock::time_point now);

  ThreadWorld& world_;
  Watch watch_;
  const std::function<void(const std::string&)> end_process_;
  std::jthread thread_;
};

ThreadWatch::ThreadWatch(ThreadWorld& world, const WatchSettings& settings,
                         std::function<void(const std::string&)> end_process)
    : world_(world), watch_(settings, world.ranks()), end_process_(std::move(end_process)) {
  if (!settings.watches_work && !settings.report) return;
  for (int rank = 0; rank < world.ranks(); ++rank) watch_.set_host(rank, world.host());
  watch_.begin(Watch::Clock::now());
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void ThreadWatch::run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, watch_.settings().interval(), [&] { return stop.stop_requested(); })) {
    look(Watch::Clock::now());
  }
}

void ThreadWatch::look(Watch::Clock::time_point now) {
  const std::int64_t share = static_cast<std::int64_t>(resident_memory_bytes()) / world_.ranks();
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    const Place::Look look = world_.place(rank).look();
    watch_.see(rank, {.place = look.text(), .waits = look.waits, .progress = look.progress, .memory = share}, now);
    if (world_.has_ended(rank)) watch_.see_end(rank, now);
  }
  const std::optional<Watch::Verdict> verdict = watch_.look(now);
  if (!verdict || world_.failed()) return;
  std::fputs(watch_.text(now).c_str(), stderr);
  if (!verdict->rank) return end_process_(verdict->reason + std::string(kWhenAllWait));
  end_process_(
      LostRank(*verdict->rank, world_.host(), world_.place(*verdict->rank).look().text(), verdict->reason).what());
}

void run_rank(const std::shared_ptr<ThreadGroup>& everyone, int rank, int threads, const Body& body) {
  ThreadWorld& world = everyone->world();
  const Place::Use place(world.place(rank));
  try {
    set_thread_count(threads);
    body(*make_thread_communicator(everyone, rank));
    world.end(rank);
  } catch (const LostRank& lost) {  // another rank's failure, which is already known, unless no rank failed
    world.fail(rank, lost.what(), std::current_exception());
  } catch (const std::exception& error) {
    world.fail(rank, error.what(), std::current_exception());
  } catch (...) {
    world.fail(rank, "an exception without a message", std::current_exception());
  }
}

}  // namespace

ThreadGroup::ThreadGroup(std::shared_ptr<ThreadWorld> world, std::vector<int> members)
    : world_(std::move(world)), members_(std::move(members)), event_(world_->make_event_count()) {}

std::shared_ptr<Rendezvous> ThreadGroup::join(std::int64_t number, int rank, const CollectiveCall& call,
                                              const Contribution& contribution) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Rendezvous>& entry = rendezvous_[number];
  if (!entry) entry = std::make_shared<Rendezvous>(*world_, *event_, members_, call);
  const std::shared_ptr<Rendezvous> rendezvous = entry;
  if (rendezvous->join(rank, call, contribution)) rendezvous_.erase(number);
  return rendezvous;
}

std::shared_ptr<Message> ThreadGroup::send_or_receive(int sender, int receiver, bool sends, const TensorRef& view,
                                                      CommunicationStream::EventPtr ready) {
  const std::lock_guard lock(mutex_);
  MessageQueue& queue = queues_[{sender, receiver}];
  const std::int64_t number = sends ? queue.sends++ : queue.receives++;
  std::shared_ptr<Message>& entry = queue.open[number];
  const bool first = !entry;
  if (first) entry = std::make_shared<Message>(*world_, *event_, world_rank(sender), world_rank(receiver));
  const std::shared_ptr<Message> message = entry;
  if (!first) queue.open.erase(number);
  message->bring(sends, view, std::move(ready));
  return message;
}

std::shared_ptr<ThreadGroup> ThreadGroup::part(std::int64_t number, const std::vector<int>& members) {
  std::vector<int> world_ranks;
  for (const int member : members) world_ranks.push_back(world_rank(member));
  const std::lock_guard lock(mutex_);
  Part& part = parts_[{number, members.front()}];
  if (!part.group) part.group = std::make_shared<ThreadGroup>(world_, std::move(world_ranks));
  const std::shared_ptr<ThreadGroup> group = part.group;
  if (++part.taken == members.size()) parts_.erase({number, members.front()});
  return group;
}

void run_thread_ranks(int ranks, const std::string& host, const WatchSettings& watch,
                      const std::function<void(const std::string&)>& end_process, const Body& body) {
  const auto world = std::make_shared<ThreadWorld>(ranks, host);
  const ThreadWatch watching(*world, watch, end_process);
  if (ranks == 1) {
    const Place::Use place(world->place(0));
    return body(*make_self_communicator());
  }
  const int threads = thread_count();
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
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
