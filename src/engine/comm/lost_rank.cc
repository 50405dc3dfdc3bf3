#include "comm/lost_rank.h"

namespace teratron {

LostRank::LostRank(int rank, const std::string& host, const std::string& activity, const std::string& reason)
    : EnvironmentError(
          fmt::format("rank {} on host {} is lost: {}; it was last known to be in: {}. All ranks end here; "
                      "start again from the last checkpoint",
                      rank, host, reason, activity.empty() ? "nothing it told of" : activity)),
      rank_(rank) {}

}  // namespace teratron
