#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "console/live_line.h"

namespace teratron {

void add_json_field(FieldList& list, std::filesystem::path& json) {
  list.add("json", &json, "FILE", "results as JSON; - is standard output, and then nothing else goes there");
}

void print_result(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw_environment_error("cannot write to standard output: {}", std::strerror(errno));
  }
}

void write_json(const std::filesystem::path& json, std::string_view json_text) {
  if (json == "-") {
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

std::function<void(int done, int steps)> show_steps(std::string doing) {
  const auto line = std::make_shared<LiveLine>(stderr, terminal_columns(stderr));
  return [line, doing = std::move(doing)](int done, int steps) {
    const std::string text = fmt::format("{}: {} of {} steps", doing, done, steps);
    line->show(text);
    const int few = std::max(1, steps / 5);
    if (!line->possible() && (done % few == 0 || done == steps)) fmt::print(stderr, "{}\n", text);
  };
}

}  // namespace teratron
