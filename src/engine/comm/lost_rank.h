// LostRank: a rank that others waited for failed, died, or was stopped.
#pragma once

#include <string>

#include "base/error.h"

namespace teratron {

// Exit code 3. The message has the rank of the world, its host, the reason, its last known activity, and what to do.
class LostRank : public EnvironmentError {
 public:
  LostRank(int rank, const std::string& host, const std::string& activity, const std::string& reason)
      : EnvironmentError(
            fmt::format("rank {} on host {} is lost: {}; it was last known to be in: {}. All ranks end here; "
                        "start again from the last checkpoint",
                        rank, host, reason, activity.empty() ? "nothing it reported" : activity)),
        rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace teratron
