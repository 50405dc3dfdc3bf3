// What every benchmark's main() does: runs it, and ends as the program does (runtime/program.h). And what benchmarks
// tell of their back end.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/cpu_instructions.h"
#include "runtime/program.h"

namespace teratron {

inline int run_program(int count, char** arguments, int (*run)(std::span<char*>)) {
  int result = 0;
  const int failed = run_program([&] { result = run({arguments, static_cast<std::size_t>(count)}); });
  return failed != 0 ? failed : result;
}

// The instructions of a back end and its settings, as bench/side.py prints them.
inline std::string text_of_instructions(const Backend& backend) {
  const std::string_view instructions = backend.name() == "cpu" ? instructions_in_use().name : "";
  const std::string settings = backend.settings();
  return fmt::format("{}{}{}", instructions, instructions.empty() || settings.empty() ? "" : ", ", settings);
}

}  // namespace teratron
