// What every benchmark's main() does: runs it, and ends as the program does (runtime/program.h).
#pragma once

#include <fmt/format.h>

#include <span>

#include "base/error.h"
#include "runtime/program.h"

namespace teratron {

inline int run_program(int count, char** arguments, int (*run)(std::span<char*>)) {
  int result = 0;
  const int failed = run_program([&] { result = run({arguments, static_cast<std::size_t>(count)}); });
  return failed != 0 ? failed : result;
}

}  // namespace teratron
