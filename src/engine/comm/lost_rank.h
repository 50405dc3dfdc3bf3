// A rank that others waited for is gone: it failed, died, or was stopped.
#pragma once

#include <string>

#include "base/error.h"

namespace teratron {

// Exit code 3. Says which rank of the world, on which host, why, what it was doing when it was last heard of, and what
// to do.
class LostRank : public EnvironmentError {
 public:
  LostRank(int rank, const std::string& host, const std::string& activity, const std::string& reason);
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace teratron
