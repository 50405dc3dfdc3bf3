// The teratron binary: runs the subcommand that the arguments name, and turns what went wrong into one message and an
// exit code.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/dispatch.h"
#include "comm/launch.h"

namespace {

using teratron::ExitCode;

ExitCode fail(ExitCode code, std::string_view message) {
  std::fflush(stdout);
  std::fputs(fmt::format("error: {}\n", message).c_str(), stderr);
  return code;
}

ExitCode run(const std::vector<std::string>& words) {
  try {
    teratron::dispatch(teratron::all_commands(), words);
    return ExitCode::kDone;
  } catch (const teratron::UserError& error) {
    return fail(ExitCode::kUser, error.what());
  } catch (const teratron::EnvironmentError& error) {
    return fail(ExitCode::kEnvironment, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kEnvironment, "out of memory; choose smaller sizes or free some");
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(ExitCode::kEnvironment, error.what());
  } catch (const std::exception& error) {
    return fail(ExitCode::kBug, fmt::format("a bug of Teratron, please report it: {}", error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = static_cast<int>(run({argv + (argc > 0 ? 1 : 0), argv + argc}));
  teratron::leave_launch(code);
  return code;
}
