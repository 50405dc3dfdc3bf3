// Detection, by the first rank's control thread, of jobs that stand still although every process is alive.
#include <cstdio>

#include "base/error.h"
#include "comm/control/control_plane.h"

namespace teratron {

void ControlPlane::look_for_standstill(Clock::time_point now) {
  if (!is_first() || !has_met_ || failure_ || is_over_) return;
  const std::optional<Watch::Verdict> verdict = watch_.look(now);
  if (!verdict) return;
  std::fputs(watch_.text(now).c_str(), stderr);
  if (verdict->rank) return declare_lost(*verdict->rank, verdict->reason);
  fail({.kind = FailureNotice::Kind::kEnvironment, .reason = verdict->reason + std::string(kWhenAllWait)});
}

}  // namespace teratron
