// Team: what all ranks of one run share, whatever their groups: who failed first, who has ended, and what everyone was
// doing.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "comm/thread/bell.h"

namespace teratron {

class Team {
 public:
  Team(int ranks, std::string host);

  const std::string& host() const { return host_; }
  void set_activity(int rank, std::string_view activity);

  // A bell that failures and ends ring, too: one for each group.
  std::shared_ptr<Bell> make_bell();

  // The first call decides what everyone is told, and wakes everyone.
  void fail(int rank, const std::string& reason, std::exception_ptr failure = nullptr);
  bool failed() const { return failed_.load(); }
  [[noreturn]] void throw_lost_rank() const;
  void rethrow_failure() const;  // nothing where nobody failed

  // The rank's body has returned: nobody will meet it any more.
  void end(int rank);
  bool has_ended(int rank) const { return ended_[static_cast<std::size_t>(rank)].load(); }

 private:
  void ring_all();

  const std::string host_;
  const int looks_;
  mutable std::mutex mutex_;  // over what follows
  std::vector<std::string> activities_;
  std::vector<std::weak_ptr<Bell>> bells_;
  int failed_rank_ = -1;
  std::string failed_activity_, reason_;
  std::exception_ptr failure_;

  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> ended_;
};

}  // namespace teratron
