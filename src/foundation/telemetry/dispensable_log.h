// A log that a run can do without: where it cannot be written, as on a full disk, that is said once, and the run goes
// on. What a log keeps of that time, it writes when there is room again (appended_file.h).
#pragma once

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/host/monotonic_clock.h"

namespace teratron {

template <class Log>
class DispensableLog {
 public:
  using Open = std::function<std::unique_ptr<Log>()>;
  using Tell = std::function<void(const std::string&)>;

  // Opens it at once, so that what is wrong with its place is told before the run; where there is only no room, it is
  // opened when there is. Throws what `open` does, but for NoSpaceError.
  DispensableLog(Open open, Tell tell) : open_(std::move(open)), tell_(std::move(tell)) {
    try {
      log_ = open_();
    } catch (const NoSpaceError& error) {
      tell_once(error);
    }
  }

  void write(const std::function<void(Log&)>& write) {
    try {
      if (!log_ && monotonic_seconds() < opens_at_) return;
      opens_at_ = monotonic_seconds() + kBetweenTrials;
      if (!log_) log_ = open_();
      write(*log_);
    } catch (const std::exception& error) {
      tell_once(error);
    }
  }

 private:
  void tell_once(const std::exception& error) {
    if (!told_) tell_(fmt::format("warning: {}; the run goes on", error.what()));
    told_ = true;
  }

  static constexpr double kBetweenTrials = 1;  // seconds: opening a long log anew takes time

  Open open_;
  Tell tell_;
  std::unique_ptr<Log> log_;
  bool told_ = false;
  double opens_at_ = 0;  // on the monotonic clock, if it is not open
};

}  // namespace teratron
