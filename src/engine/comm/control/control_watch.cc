// Detection of jobs that stand still although every process is alive: by the first rank's control thread, which sees
// all ranks' progress, and by each rank's, which sees its own channels.
#include <cstdio>

#include "base/error.h"
#include "comm/control/control_plane.h"

namespace teratron {
namespace {

constexpr auto kSilenceOfStopped = std::chrono::milliseconds(1500);  // longer than between heartbeats

}  // namespace

void ControlPlane::look_for_standstill(Clock::time_point now) {
  if (!is_first() || !has_met_ || failure_ || is_over_) return;
  const std::optional<Watch::Verdict> verdict = watch_.look(now);
  if (!verdict) return;
  std::fputs(watch_.text(now).c_str(), stderr);
  if (verdict->rank) {
    // A process that computes keeps sending heartbeats. One that was stopped may be found here first, if the watch's
    // limit is the shorter one.
    const bool is_silent = *verdict->rank != 0 && now - peer(*verdict->rank).last_heard > kSilenceOfStopped;
    return declare_lost(*verdict->rank, verdict->reason + (is_silent ? ", and it sent no heartbeat (it was stopped, or "
                                                                       "its host cannot be reached)"
                                                                     : ""));
  }
  fail({.kind = FailureNotice::Kind::kEnvironment, .reason = verdict->reason + std::string(kWhenAllWait)});
}

// Asks this rank's channels whether they broke: only the two ends of a link notice that, while every rank waits. A rank
// that has a failure aborts its channels itself, and they are not asked any more.
void ControlPlane::look_for_broken_channels() {
  if (!has_met_ || failure_ || notified_ || is_over_) return;
  for (const std::weak_ptr<OpenChannels>& weak : channels_) {
    const auto channels = weak.lock();
    const std::string fault = channels ? channels->fault() : "";
    if (fault.empty()) continue;
    if (!is_first()) peer(0).connection.send({"failed", activity(), fault});
    return declare_lost(own_.rank, fault);
  }
}

}  // namespace teratron
