// ThreadWorld: the state that all ranks of one run share, whatever their groups: which rank failed first, which have
// ended, and what each was doing.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/place.h"
#include "comm/thread/event_count.h"

namespace teratron {

class ThreadWorld {
 public:
  ThreadWorld(int ranks, std::string host);

  const std::string& host() const { return host_; }
  int ranks() const { return static_cast<int>(places_.size()); }
  Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }

  // For one group. fail() and end() notify it, too.
  std::shared_ptr<EventCount> make_event_count();

  // Wakes all ranks. The first call decides the exception that they throw.
  void fail(int rank, const std::string& reason, std::exception_ptr failure = nullptr);
  bool failed() const { return failed_.load(); }
  [[noreturn]] void throw_lost_rank() const;
  void rethrow_failure() const;  // returns if no rank failed

  // The rank's body has returned: it takes part in nothing any more.
  void end(int rank);
  bool has_ended(int rank) const { return ended_[static_cast<std::size_t>(rank)].load(); }

 private:
  void notify_all();

  const std::string host_;
  const int looks_;
  std::vector<Place> places_;  // by rank
  mutable std::mutex mutex_;   // over what follows
  std::vector<std::weak_ptr<EventCount>> events_;
  int failed_rank_ = -1;
  std::string failed_activity_, reason_;
  std::exception_ptr failure_;

  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> ended_;
};

}  // namespace teratron
