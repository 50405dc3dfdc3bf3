#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "console/live_line.h"
#include "console/readable.h"

namespace teratron {

void add_json_field(FieldList& list, std::filesystem::path& json) {
  list.add("json", &json, "FILE", "results as JSON; - is standard output, and then nothing else goes there").when_set =
      [&json] { require_writable(json); };
}

void add_overwrite_field(FieldList& list, bool& overwrite) {
  list.add("overwrite", &overwrite, "", "replace what stands where results go; without it that is refused");
}

void print_result(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    const std::string fault = fmt::format("cannot write to standard output: {}", std::strerror(errno));
    if (errno == EPIPE) throw OutputClosed(fault);
    throw EnvironmentError(fault);
  }
}

void write_json(const std::filesystem::path& json, std::string_view json_text) {
  if (is_standard_stream(json)) {
    print_result(fmt::format("{}\n", json_text));
  } else if (!json.empty()) {
    write_file_atomically(json, fmt::format("{}\n", json_text));
  }
}

void report(const std::filesystem::path& json, std::string_view text, std::string_view json_text) {
  report_beside({}, json, text, json_text);
}

void report_beside(const std::filesystem::path& out, const std::filesystem::path& json, std::string_view text,
                   std::string_view json_text) {
  if (is_standard_stream(json) || is_standard_stream(out)) {
    std::fwrite(text.data(), 1, text.size(), stderr);
  } else {
    print_result(text);
  }
  write_json(json, json_text);
}

void add_output_faults(Faults& faults, std::string_view name, const std::filesystem::path& out,
                       const std::filesystem::path& json) {
  faults.add_if(is_standard_stream(out) && is_standard_stream(json),
                "{} and {} both go to standard output (-); name a file for one of them", name, Flag{"json"});
}

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
    tell_user(text);
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
