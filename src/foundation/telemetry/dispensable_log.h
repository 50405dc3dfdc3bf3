// Log that a run can do without. If it cannot be written, as on a full disk, a warning is reported once and the run
// goes on. An open log writes the records of that time when there is space again (appended_file.h). Records that come
// before it could be opened are lost.
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
  using Report = std::function<void(const std::string&)>;

  // Opens the log at once, so that errors of its path come before the run. Without space it is opened later. Throws
  // errors of `open` other than NoSpaceError.
  DispensableLog(Open open, Report report) : open_(std::move(open)), report_(std::move(report)) {
    try {
      log_ = open_();
    } catch (const NoSpaceError& error) {
      report_once(error);
    }
  }

  void write(const std::function<void(Log&)>& write) {
    try {
      if (!log_ && monotonic_seconds() < opens_at_) return;
      opens_at_ = monotonic_seconds() + kBetweenTrials;
      if (!log_) log_ = open_();
      write(*log_);
    } catch (const std::exception& error) {
      report_once(error);
    }
  }

 private:
  void report_once(const std::exception& error) {
    if (!is_reported_) report_(fmt::format("warning: {}; the run goes on", error.what()));
    is_reported_ = true;
  }

  static constexpr double kBetweenTrials = 1;  // seconds; opening a long log takes time

  Open open_;
  Report report_;
  std::unique_ptr<Log> log_;
  bool is_reported_ = false;
  double opens_at_ = 0;  // time of the next try, on the monotonic clock
};

}  // namespace teratron
