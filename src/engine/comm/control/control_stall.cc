// Detection, by the first rank's control thread, of jobs that stand still although every process is alive.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "comm/control/control_plane.h"

namespace teratron {
namespace {

double seconds_of(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

// A rank that computes, or writes a file, does not wait, however long that takes. Where all wait, a message must come.
void ControlPlane::look_for_stall(Clock::time_point now) {
  if (!is_first() || !has_met_ || failure_ || is_over_ || settings_.longest_stall.count() == 0) return;
  Peer& own = peer(0);
  const std::string done = std::to_string(exchanges_done_);
  if (!waits_ || done != own.exchanges_done) last_progress_ = now;
  own.exchanges_done = done;
  if (!std::ranges::all_of(neighbours(), [&](int rank) { return peer(rank).waits; })) last_progress_ = now;
  const auto stalled = now - last_progress_;
  if (stalled < settings_.longest_stall / 2) {
    stall_is_reported_ = false;
  } else if (stalled >= settings_.longest_stall) {
    fail({.kind = FailureNotice::Kind::kEnvironment,
          .reason = fmt::format("{}; all ranks end here. A stranger's connection to a port of MPI does that, and a "
                                "network that loses messages; keep MPI to the hosts' own network "
                                "(docs/guide/clusters.md), and start again from the last checkpoint",
                                text_of_stall(now))});
  } else if (!std::exchange(stall_is_reported_, true)) {
    std::fputs(fmt::format("{}; the job ends after {:g} seconds of that (TERATRON_STALL_TIMEOUT)\n", text_of_stall(now),
                           seconds_of(settings_.longest_stall))
                   .c_str(),
               stderr);
  }
}

std::string ControlPlane::text_of_stall(Clock::time_point now) const {
  constexpr std::size_t kMostShown = 16;
  std::string waiting;
  for (std::size_t rank = 0; rank < std::min(kMostShown, peers_.size()); ++rank) {
    const std::string& activity = rank == 0 ? activity_ : peers_[rank].activity;
    waiting += fmt::format("{}rank {} on {} in: {}", rank == 0 ? "" : ", ", rank, peers_[rank].host,
                           activity.empty() ? "nothing it reported" : activity);
  }
  return fmt::format("nothing has moved for {:.0f} seconds, and all ranks wait for one another ({}{})",
                     seconds_of(now - last_progress_), waiting, peers_.size() > kMostShown ? ", .." : "");
}

}  // namespace teratron
