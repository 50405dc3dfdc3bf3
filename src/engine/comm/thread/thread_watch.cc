#include "comm/thread/thread_watch.h"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/host/resources.h"
#include "comm/lost_rank.h"

namespace teratron {

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

}  // namespace teratron
