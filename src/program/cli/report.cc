#include "cli/report.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {

void add_json_field(FieldList& list, std::filesystem::path& json) {
  list.add("json", &json, "FILE", "results as JSON; - is standard output, and then nothing else goes there")
      .writes(FileContent::kJson);
}

void add_json_lines_field(FieldList& list, std::filesystem::path& json) {
  list.add("json", &json, "LINES",
           "file with a JSON object per line for each text, in order; - is standard output, for JSON alone")
      .writes(FileContent::kJsonLines);
}

void add_overwrite_field(FieldList& list, bool& overwrite) {
  list.add("overwrite", &overwrite, "", "replace existing results; without it they are an error");
}

void add_color_field(FieldList& list, Colours& color, std::string_view what) {
  list.add_choice("color", color, {{"auto", Colours::kAuto}, {"always", Colours::kAlways}, {"never", Colours::kNever}},
                  fmt::format("{}; auto: on a terminal, unless NO_COLOR is set", what));
}

void print_result(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    const std::string fault = fmt::format("cannot write to standard output: {}", std::strerror(errno));
    if (errno == EPIPE) throw OutputClosed(fault);
    throw EnvironmentError(fault);
  }
}

void write_json(const std::filesystem::path& json, std::string_view json_line) {
  if (is_standard_stream(json)) {
    print_result(fmt::format("{}\n", json_line));
  } else if (!json.empty()) {
    write_file_atomically(json, fmt::format("{}\n", json_line));
  }
}

void report(const std::filesystem::path& json, std::string_view text, std::string_view json_line) {
  report_beside({}, json, text, json_line);
}

void report_beside(const std::filesystem::path& out, const std::filesystem::path& json, std::string_view text,
                   std::string_view json_line) {
  if (is_standard_stream(json) || is_standard_stream(out)) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    return write_json(json, json_line);
  }
  write_json(json, json_line);  // first: standard output may be closed or full
  print_result(text);
}

void add_output_faults(Faults& faults, std::string_view name, const std::filesystem::path& out,
                       const std::filesystem::path& json) {
  faults.add_if(is_standard_stream(out) && is_standard_stream(json),
                "{} and {} both go to standard output (-); name a file for one of them", name, Flag{"json"});
}

void add_name_fault(Faults& faults, std::string_view name, const std::filesystem::path& out) {
  faults.add_if(is_standard_stream(out), "{} is -, standard output, and what is written there needs a name; give one",
                name);
}

}  // namespace teratron
