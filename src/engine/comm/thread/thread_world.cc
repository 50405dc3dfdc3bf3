#include "comm/thread/thread_world.h"

#include <thread>
#include <utility>

#include "comm/lost_rank.h"

namespace teratron {
namespace {

// Polls for about 50 microseconds if every rank has its own core, else not at all.
int looks_for(int ranks) { return ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? 2000 : 0; }

}  // namespace

ThreadWorld::ThreadWorld(int ranks, std::string host)
    : host_(std::move(host)),
      looks_(looks_for(ranks)),
      places_(static_cast<std::size_t>(ranks)),
      ended_(static_cast<std::size_t>(ranks)) {}

std::shared_ptr<EventCount> ThreadWorld::make_event_count() {
  auto event = std::make_shared<EventCount>(looks_);
  const std::lock_guard lock(mutex_);
  std::erase_if(events_, [](const std::weak_ptr<EventCount>& other) { return other.expired(); });
  events_.push_back(event);
  return event;
}

void ThreadWorld::fail(int rank, const std::string& reason, std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_rank_ >= 0) return;
    failed_rank_ = rank;
    failed_activity_ = place(rank).look().text();
    reason_ = reason;
    failure_ = std::move(failure);
    failed_.store(true);
  }
  notify_all();
}

void ThreadWorld::throw_lost_rank() const {
  const std::lock_guard lock(mutex_);
  throw LostRank(failed_rank_, host_, failed_activity_, reason_);
}

void ThreadWorld::rethrow_failure() const {
  if (!failed()) return;
  if (failure_) std::rethrow_exception(failure_);
  throw_lost_rank();
}

void ThreadWorld::end(int rank) {
  ended_[static_cast<std::size_t>(rank)].store(true);
  notify_all();
}

void ThreadWorld::notify_all() {
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<EventCount>& event : events_) {
    if (const auto alive = event.lock()) alive->notify_all();
  }
}

}  // namespace teratron
