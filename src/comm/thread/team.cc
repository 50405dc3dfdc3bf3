#include "comm/thread/team.h"

#include <thread>
#include <utility>

#include "comm/lost_rank.h"

namespace teratron {
namespace {

// About 50 microseconds of looking where every rank has a core of its own; else the core is better left to the others.
int looks_for(int ranks) { return ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? 2000 : 0; }

}  // namespace

Team::Team(int ranks, std::string host)
    : host_(std::move(host)),
      looks_(looks_for(ranks)),
      activities_(static_cast<std::size_t>(ranks)),
      ended_(static_cast<std::size_t>(ranks)) {}

void Team::set_activity(int rank, std::string_view activity) {
  const std::lock_guard lock(mutex_);
  activities_[static_cast<std::size_t>(rank)] = activity;
}

std::shared_ptr<Bell> Team::make_bell() {
  auto bell = std::make_shared<Bell>(looks_);
  const std::lock_guard lock(mutex_);
  std::erase_if(bells_, [](const std::weak_ptr<Bell>& other) { return other.expired(); });
  bells_.push_back(bell);
  return bell;
}

void Team::fail(int rank, const std::string& reason, std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_rank_ >= 0) return;
    failed_rank_ = rank;
    failed_activity_ = activities_[static_cast<std::size_t>(rank)];
    reason_ = reason;
    failure_ = std::move(failure);
    failed_.store(true);
  }
  ring_all();
}

void Team::throw_lost_rank() const {
  const std::lock_guard lock(mutex_);
  throw LostRank(failed_rank_, host_, failed_activity_, reason_);
}

void Team::rethrow_failure() const {
  if (!failed()) return;
  if (failure_) std::rethrow_exception(failure_);
  throw_lost_rank();
}

void Team::end(int rank) {
  ended_[static_cast<std::size_t>(rank)].store(true);
  ring_all();
}

void Team::ring_all() {
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<Bell>& bell : bells_) {
    if (const auto alive = bell.lock()) alive->ring();
  }
}

}  // namespace teratron
