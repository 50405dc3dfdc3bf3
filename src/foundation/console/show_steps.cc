#include "console/show_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "console/live_line.h"
#include "console/readable.h"

namespace teratron {
namespace {

// Where there is no terminal: the beginning, the first estimate that rests on a step, and the end are worth a line; of
// what lies between, a line every ten seconds.
class StepLines {
 public:
  StepLines(std::string doing, double seconds_of_step)
      : doing_(std::move(doing)),
        seconds_of_step_(seconds_of_step),
        line_(stderr, terminal_columns(stderr)),
        began_(monotonic_seconds()) {}

  void show(int done, int steps) {
    constexpr double kBetween = 10;
    const double now = monotonic_seconds(), seconds = now - began_;
    const double of_step = done > 0 ? seconds / done : seconds_of_step_;
    std::string text = fmt::format("{}: {} of {} steps", doing_, done, steps);
    if (of_step > 0 && done < steps)
      text += fmt::format(", about {} left", readable_duration(of_step * (steps - done)));
    line_.show(text);
    if (line_.possible() || (done > 1 && done < steps && now - said_ < std::max(kBetween, seconds / 10))) return;
    report_to_user(text);
    said_ = now;
  }

 private:
  std::string doing_;
  double seconds_of_step_;
  LiveLine line_;
  double began_, said_ = 0;
};

}  // namespace

std::function<void(int done, int steps)> show_steps(std::string doing, double seconds_of_step) {
  const auto lines = std::make_shared<StepLines>(std::move(doing), seconds_of_step);
  return [lines](int done, int steps) { lines->show(done, steps); };
}

}  // namespace teratron
