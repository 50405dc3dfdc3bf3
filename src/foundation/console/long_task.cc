#include "console/long_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <system_error>
#include <utility>

#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "console/readable.h"

namespace teratron {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr double kLeastShare = 1e-3;  // smaller shares give no estimate of the time left
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
      shown_at_(kNotYet) {
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // Without a thread the task goes on and shows nothing.
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
  shown_at_ = kNotYet;
}

void LongTask::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, kTick, [this] { return ended_; })) {
    const double now = monotonic_seconds(), seconds = now - began_;
    if (seconds < options_.patience) continue;
    const std::string text = progress_text(doing_, share_ ? share_() : 0, seconds);
    if (line_.possible()) {
      line_.show(text);
    } else if (shown_at_ == kNotYet || now - shown_at_ >= std::max(options_.between, seconds / 10)) {
      std::fputs((text + "\n").c_str(), options_.file);
      std::fflush(options_.file);
      shown_at_ = now;
    }
  }
}

std::function<void(double share)> show_share(std::string doing, bool is_shown) {
  if (!is_shown) return [](double) {};
  struct Shown {
    std::atomic<double> share{0};
    LongTask task;  // reads the share until it ends
    explicit Shown(std::string doing) : task(std::move(doing), [this] { return share.load(); }) {}
  };
  return [shown = std::make_shared<Shown>(std::move(doing))](double share) { shown->share = share; };
}

std::function<void(int done, int steps)> show_steps(std::string doing, double seconds_of_step) {
  const auto line = std::make_shared<LiveLine>(stderr, terminal_columns(stderr));
  return [=, began = monotonic_seconds(), shown_at = kNotYet](int done, int steps) mutable {
    const double now = monotonic_seconds(), seconds = now - began;
    const double of_step = done > 0 ? seconds / done : seconds_of_step;
    std::string text = fmt::format("{}: {} of {} steps", doing, done, steps);
    if (of_step > 0 && done < steps) {
      text += fmt::format(", about {} left", readable_duration(of_step * (steps - done)));
    }
    line->show(text);
    // Without a terminal: lines at the beginning, after the first step, at the end, and every ten seconds between.
    const double between = std::max(LongTask::Options().between, seconds / 10);
    if (line->possible() || (done > 1 && done < steps && now - shown_at < between)) return;
    report_to_user(text);
    shown_at = now;
  };
}

}  // namespace teratron
