// What every benchmark's main() does: runs it, and ends with one line that says what went wrong.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <new>
#include <span>

#include "base/error.h"

namespace teratron {

// Exit codes as teratron's own: 2 for a wrong call, 3 for what the machine lacks, 1 for whatever else fails.
inline int run_program(int count, char** arguments, int (*run)(std::span<char*>)) {
  const auto fail = [](ExitCode code, const char* message) {
    fmt::print(stderr, "error: {}\n", message);
    return static_cast<int>(code);
  };
  try {
    return run({arguments, static_cast<std::size_t>(count)});
  } catch (const UserError& error) {
    return fail(ExitCode::kUser, error.what());
  } catch (const EnvironmentError& error) {
    return fail(ExitCode::kEnvironment, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kEnvironment, "out of memory; choose smaller sizes or free some");
  } catch (const std::exception& error) {
    return fail(ExitCode::kBug, error.what());
  }
}

}  // namespace teratron
