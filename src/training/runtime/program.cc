#include "runtime/program.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "base/host/threads.h"
#include "comm/launch.h"

namespace teratron {
namespace {

// End of the program: its exit code, and whether its work ended in good order.
struct End {
  int exit_code = static_cast<int>(ExitCode::kDone);
  bool in_order = true;
};

End fail(ExitCode code, std::string_view message) {
  std::fflush(stdout);
  report_to_user(fmt::format("error: {}", message));
  return {.exit_code = static_cast<int>(code), .in_order = false};
}

// End by the exception that is being handled.
End end_of_exception() {
  try {
    throw;
  } catch (const EndedBySignal& end) {
    return {.exit_code = end.exit_code()};
  } catch (const OutputClosed&) {
    return {.exit_code = OutputClosed::kExitCode, .in_order = false};
  } catch (const UserError& error) {
    return fail(ExitCode::kUser, error.what());
  } catch (const EnvironmentError& error) {
    return fail(ExitCode::kEnvironment, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kEnvironment, "out of memory; choose smaller sizes or free some");
  } catch (const std::filesystem::filesystem_error& error) {
    const bool is_loop = error.code() == std::errc::too_many_symbolic_link_levels;
    return fail(is_loop ? ExitCode::kUser : ExitCode::kEnvironment,
                fmt::format("cannot use '{}': {}{}", error.path1().string(), error.code().message(),
                            is_loop ? "; delete the links that lead to one another" : ""));
  } catch (const std::exception& error) {
    if (is_lack_of_threads(error)) {
      return fail(
          ExitCode::kEnvironment,
          fmt::format("the system gives this program no more threads ({}); raise the limit (ulimit -u or -v, or "
                      "that of the container or job), or choose fewer --threads or ranks",
                      error.what()));
    }
    return fail(ExitCode::kBug, fmt::format("a bug of Teratron, please report it: {}", error.what()));
  }
}

// Ends the program with the message of an exception that a thread could not pass on, as for lack of memory.
[[noreturn]] void end_in_a_thread() {
  End end{.exit_code = static_cast<int>(ExitCode::kBug)};
  if (std::current_exception()) end = end_of_exception();
  std::_Exit(end.exit_code);
}

}  // namespace

int run_program(const std::function<void()>& body) {
  open_closed_standard_streams();
  make_failed_writes_errors();
  std::set_terminate(end_in_a_thread);
  End end;
  try {
    body();
  } catch (...) {
    end = end_of_exception();
  }
  leave_launch(end.in_order ? 0 : end.exit_code);
  return end.exit_code;
}

}  // namespace teratron
