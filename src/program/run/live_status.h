// State of a living run, for `teratron top` (telemetry/live_file.h), from two sources: the watch of the ranks
// (comm/watch.h) and the observer of the updates.
#pragma once

#include <deque>
#include <filesystem>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "comm/watch.h"
#include "telemetry/live_file.h"
#include "train/trainer.h"

namespace teratron {

// Ranks as the watch last saw them. The watch outlives the run.
class RankBoard {
 public:
  void take(std::span<const RankReport> reports);
  std::vector<RankReport> reports() const;

 private:
  mutable std::mutex mutex_;
  std::vector<RankReport> reports_;
};

// Writes the file once a second, on a thread of its own: a folder that hangs delays neither updates nor heartbeats.
class LiveStatus final : public TrainingObserver {
 public:
  // `start`: the state at the start, with the host and the iterations done. This run holds the folder.
  LiveStatus(const RankBoard& board, std::filesystem::path folder, LiveRun start);
  LiveStatus(const LiveStatus&) = delete;
  LiveStatus& operator=(const LiveStatus&) = delete;
  ~LiveStatus() override;  // leaves the file if the run did not end in good order

  void iteration(const IterationReport& report) override;
  void end_in_order() { ended_in_order_ = true; }

 private:
  void write_until(const std::stop_token& stop);
  LiveRun state() const;

  const RankBoard& board_;
  const std::filesystem::path folder_;
  mutable std::mutex mutex_;  // guards run_ and recent_
  LiveRun run_;
  std::deque<IterationReport> recent_;
  bool ended_in_order_ = false;
  std::jthread thread_;
};

}  // namespace teratron
