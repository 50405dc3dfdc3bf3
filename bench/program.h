// What every benchmark's main() does: runs it, and ends with one line that says what went wrong.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <span>

#include "base/error.h"

namespace teratron {

// Exit codes as the program's own: 2 for a wrong call and whatever else fails, 3 for what the machine lacks.
inline int run_program(int count, char** arguments, int (*run)(std::span<char*>)) {
  try {
    return run({arguments, static_cast<std::size_t>(count)});
  } catch (const EnvironmentError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}

}  // namespace teratron
