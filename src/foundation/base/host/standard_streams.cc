#include "base/host/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace teratron {
namespace {

// Used instead of SIG_IGN, which child processes would inherit.
void let_the_write_fail(int) {}

}  // namespace

void open_closed_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // open() returns the lowest free number, which is this one.
    (void)!::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void make_failed_writes_errors() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;
    action.sa_handler = let_the_write_fail;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

void report_to_user(std::string_view line) {
  // One write: standard error has no buffer, and lines of several threads would mix.
  const std::string text = std::string(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace teratron
