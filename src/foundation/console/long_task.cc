#include "console/long_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <system_error>
#include <utility>

#include "base/host/monotonic_clock.h"
#include "console/readable.h"

namespace teratron {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr double kLeastShare = 1e-3;  // of less than that no time left is told
constexpr double kNotYet = -1;

}  // namespace

std::string progress_text(const std::string& doing, double share, double seconds) {
  if (!(share >= kLeastShare)) return fmt::format("{}: {} so far", doing, readable_duration(seconds));
  const double done = std::min(share, 1.0);
  return fmt::format("{}: {:.0f} %, about {} left", doing, std::floor(100 * done),
                     readable_duration(seconds / done - seconds));
}

LongTask::LongTask(std::string doing, Share share, const Options& options)
    : options_(options),
      line_(options.file, options.columns),
      doing_(std::move(doing)),
      share_(std::move(share)),
      began_(monotonic_seconds()),
      said_(kNotYet) {
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // Where no thread is to be had, the task goes on, untold.
  }
}

LongTask::~LongTask() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_one();
  if (watcher_.joinable()) watcher_.join();
  line_.clear();
}

void LongTask::next(std::string doing, Share share) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
  share_ = std::move(share);
  began_ = monotonic_seconds();
  said_ = kNotYet;
}

void LongTask::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, kTick, [this] { return ended_; })) {
    const double now = monotonic_seconds(), seconds = now - began_;
    if (seconds < options_.patience) continue;
    const std::string text = progress_text(doing_, share_ ? share_() : 0, seconds);
    if (line_.possible()) {
      line_.show(text);
    } else if (said_ == kNotYet || now - said_ >= std::max(options_.between, seconds / 10)) {
      std::fputs((text + "\n").c_str(), options_.file);
      std::fflush(options_.file);
      said_ = now;
    }
  }
}

}  // namespace teratron
