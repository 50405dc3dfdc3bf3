// Watch over the ranks of a job: what was last seen of each, and whether the job still moves. A rank stands where it
// computes and counts no progress (place.h); a job stands where all of its ranks wait for one another and nothing
// arrives. A rank that waits for one that works is well, however long that takes.
//
// A thread of one process looks: of the process whose threads are the ranks, or of the first rank's, which heartbeats
// reach (control/control_plane.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/place.h"

namespace teratron {

// Last look at a rank.
struct RankReport {
  int rank = 0;
  std::string host, place;  // place: as Place::Look::text()
  bool waits = false;       // for other ranks
  bool has_ended = false;
  double still = 0;         // seconds since its last progress
  std::int64_t memory = 0;  // bytes of the host's memory that it holds now: its share of its process's
};

struct WatchSettings {
  // How long a job may stand. Zero: for ever. Ranks that are threads are watched only with watches_work or a report.
  std::chrono::milliseconds longest = std::chrono::minutes(10);
  // Whether a rank that does not wait for others has to make progress, too: not where it waits for users.
  bool watches_work = false;
  // Receives what is seen of all ranks once a second, on the thread that looks. Must not block.
  std::function<void(std::span<const RankReport>)> report;

  // Time between looks at a rank.
  std::chrono::milliseconds interval() const;
};

// Text after the reason where all ranks wait for one another.
inline constexpr std::string_view kWhenAllWait =
    "; all ranks end here. A stranger's connection to a port of MPI does that, and a network that loses messages; keep "
    "MPI to the hosts' own network (docs/guide/clusters.md), and start again from the last checkpoint";

class Watch {
 public:
  using Clock = std::chrono::steady_clock;
  struct Sight {
    std::string place;
    bool waits = false;
    std::uint64_t progress = 0;
    std::int64_t memory = 0;
  };
  // Why the job must end.
  struct Verdict {
    std::optional<int> rank;  // that stands; none: all wait for one another
    std::string reason;
  };

  Watch(WatchSettings settings, int ranks);

  const WatchSettings& settings() const { return settings_; }
  void set_host(int rank, const std::string& host) { report_of(rank).host = host; }
  void begin(Clock::time_point now);  // all ranks have met
  void see(int rank, const Sight& sight, Clock::time_point now);
  void see_end(int rank, Clock::time_point now);  // which is progress; later calls do nothing

  // Judges, reports, and prints a warning to stderr after half of the time. Called once an interval() or more often:
  // after a far longer pause this process was stopped itself (SIGSTOP, a debugger), and all times begin anew.
  std::optional<Verdict> look(Clock::time_point now);

  // Lines for people, one a rank: its place, and how long it has stood there.
  std::string text(Clock::time_point now);

 private:
  RankReport& report_of(int rank) { return reports_[static_cast<std::size_t>(rank)]; }
  void count_times(Clock::time_point now);
  // Longest stand: of a rank that works, or all of them, waiting for one another.
  struct Stand {
    std::optional<int> rank;
    double seconds = 0;
  };
  Stand longest_stand() const;
  std::string reason_of(const Stand& stand) const;
  std::string who_waits() const;

  const WatchSettings settings_;
  std::vector<RankReport> reports_;
  std::vector<std::uint64_t> progress_;
  std::vector<Clock::time_point> moved_at_;
  Clock::time_point last_look_, next_report_;
  bool has_begun_ = false, has_warned_ = false;
};

}  // namespace teratron
