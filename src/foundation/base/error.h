// Errors by whose fault they are. The kind decides the exit code (src/foundation/base/README.md).
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace teratron {

enum class ExitCode { kDone = 0, kBug = 1, kUser = 2, kEnvironment = 3 };

// Wrong input of the user: a flag, a file's content, a size. The message says what is wrong, where, and what to do.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Failure of the machine: a full disk, no permission, a lost rank, no device.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Lack of space: a full disk, a quota, a limit of the size of files. It may pass.
class NoSpaceError : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

// End of the output's reader, as `head` after its last line. The program ends without a message, with the exit code
// that a shell gives to a program ended by SIGPIPE.
class OutputClosed : public EnvironmentError {
 public:
  static constexpr int kExitCode = 141;
  using EnvironmentError::EnvironmentError;
};

// Orderly end after a signal; not a failure. The exit code is 128 + signal, as a shell's for a program that a signal
// ended.
class EndedBySignal : public std::runtime_error {
 public:
  explicit EndedBySignal(int signal) : runtime_error(fmt::format("ended by signal {}", signal)), signal_(signal) {}
  int exit_code() const { return 128 + signal_; }

 private:
  int signal_;
};

// Bug of Teratron: one part broke its promise to another.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <class... Args>
[[noreturn]] void throw_user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void throw_environment_error(fmt::format_string<Args...> format, Args&&... args) {
  throw EnvironmentError(fmt::format(format, std::forward<Args>(args)...));
}

// Throw InternalError with the caller's place, check_equal with both values.
inline void check(bool condition, std::string_view what, std::source_location at = std::source_location::current()) {
  if (!condition) throw InternalError(fmt::format("{}:{}: check failed: {}", at.file_name(), at.line(), what));
}

template <class A, class B>
void check_equal(const A& actual, const B& expected, std::string_view what,
                 std::source_location at = std::source_location::current()) {
  if (!(actual == expected)) {
    throw InternalError(
        fmt::format("{}:{}: {}: got {}, expected {}", at.file_name(), at.line(), what, actual, expected));
  }
}

}  // namespace teratron
