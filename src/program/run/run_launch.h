// Process of a command that trains: its ranks, the clock of --exit-duration-in-mins, and signals that end it in good
// order.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/host/monotonic_clock.h"
#include "run/live_status.h"
#include "runtime/end_signals.h"
#include "runtime/ranks.h"
#include "train/config/config.h"

namespace teratron {

// Launch of a process; a command makes it first. Its runs (run.h), one after the other, are made within run().
class RunLaunch {
 public:
  explicit RunLaunch(const TrainConfig& config)
      : launcher_(config.layout, config.backend.kind,
                  {.longest = config.failures.longest_standstill(),
                   .watches_work = true,
                   .report = [board = board_](std::span<const RankReport> reports) { board->take(reports); }}) {}

  // Calls `body` on every rank of the layout. `options` and errors: as RankLauncher::run.
  void run(const std::string& options, const std::function<void(const Rank&)>& body) const {
    launcher_.run(options, body);
  }

  double began() const { return began_; }  // on the monotonic clock
  bool is_first_process() const { return launcher_.is_first_process(); }
  std::string layout() const { return launcher_.description(); }  // for people; empty for one rank
  EndSignals& end_signals() { return end_signals_; }
  const RankBoard& board() const { return *board_; }

  // Whether this rank's result is its process's.
  static bool speaks_for_process(const Rank& rank) {
    return rank.is_first() || rank.environment.kind != RankKind::kThreads;
  }

 private:
  const double began_ = monotonic_seconds();
  const std::shared_ptr<RankBoard> board_ = std::make_shared<RankBoard>();
  const RankLauncher launcher_;
  EndSignals end_signals_{is_first_process()};
};

}  // namespace teratron
