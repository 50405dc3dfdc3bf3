#include "run/live_status.h"

#include <unistd.h>

#include <condition_variable>
#include <utility>

#include "base/host/monotonic_clock.h"

namespace teratron {
namespace {

constexpr std::size_t kAveraged = 20;  // updates
constexpr auto kBetweenStates = std::chrono::seconds(1);

}  // namespace

void RankBoard::take(std::span<const RankReport> reports) {
  const std::lock_guard lock(mutex_);
  reports_.assign(reports.begin(), reports.end());
}

std::vector<RankReport> RankBoard::reports() const {
  const std::lock_guard lock(mutex_);
  return reports_;
}

LiveStatus::LiveStatus(const RankBoard& board, std::filesystem::path folder, LiveRun start)
    : board_(board), folder_(std::move(folder)), run_(std::move(start)) {
  run_.process = ::getpid();
  thread_ = std::jthread([this](const std::stop_token& stop) { write_until(stop); });
}

LiveStatus::~LiveStatus() {
  thread_.request_stop();
  thread_.join();
  if (ended_in_order_) remove_live_file(folder_);
}

void LiveStatus::iteration(const IterationReport& report) {
  const std::lock_guard lock(mutex_);
  recent_.push_back(report);
  if (recent_.size() > kAveraged) recent_.pop_front();
  double seconds = 0, tokens = 0;
  for (const IterationReport& one : recent_) {
    seconds += one.seconds;
    tokens += static_cast<double>(one.tokens);
  }
  run_.iteration = report.iteration;
  run_.loss = report.loss;
  run_.tokens_per_second = seconds > 0 ? tokens / seconds : 0;
  run_.seconds_left =
      seconds / static_cast<double>(recent_.size()) * static_cast<double>(run_.iterations - report.iteration);
}

LiveRun LiveStatus::state() const {
  LiveRun state;
  {
    const std::lock_guard lock(mutex_);
    state = run_;
  }
  for (const RankReport& report : board_.reports()) {
    state.ranks.push_back({.rank = report.rank,
                           .host = report.host,
                           .place = report.place,
                           .waits = report.waits,
                           .still = report.still,
                           .memory = report.memory});
  }
  state.written_at = wall_seconds();
  return state;
}

// A write that fails is ignored: the next one comes in a second.
void LiveStatus::write_until(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  do {
    (void)write_live_file(folder_, state());
  } while (!stopped.wait_for(lock, stop, kBetweenStates, [&] { return stop.stop_requested(); }));
  if (!ended_in_order_) (void)write_live_file(folder_, state());
}

}  // namespace teratron
