#include "cli/report.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

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
  if (json == "-") {
    std::fwrite(text.data(), 1, text.size(), stderr);
  } else {
    print_result(text);
  }
  write_json(json, json_text);
}

}  // namespace teratron
