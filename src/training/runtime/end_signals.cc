#include "runtime/end_signals.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>

#include "base/host/resources.h"
#include "base/host/standard_streams.h"
#include "comm/control/termination.h"

namespace teratron {
namespace {

// State of the handler.
std::atomic<int> first_signal{0};
std::atomic<bool> answers{false};
std::atomic<void (*)(int)> sigterm_before{nullptr};  // the control plane's handler
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<void (*)(int)>::is_always_lock_free);

std::mutex listening_mutex;
bool is_listening = false;
std::array<struct sigaction, kEndSignals.size()> before{};
std::optional<rlim_t> processor_time_before;  // where listen() lowered the soft limit

constexpr std::string_view kAnswer =
    "\nasked to end: this update is finished, then saved if there is a --save; SIGINT (Ctrl-C) again ends at once\n";

void note(int signal);

void act(int signal, void (*action)(int)) {
  struct sigaction wanted {};
  wanted.sa_handler = action;
  wanted.sa_flags = SA_RESTART;
  ::sigaction(signal, &wanted, nullptr);
}

bool is_noted(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == note;
}

void note(int signal) {
  const int error = errno;
  if (is_noted(SIGINT)) act(SIGINT, SIG_DFL);  // the next one ends the process
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal) && answers.load()) {
    // Skips a stopped terminal or a full pipe, where write() would block.
    pollfd look{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&look, 1, 0) == 1) (void)!::write(STDERR_FILENO, kAnswer.data(), kAnswer.size());
  }
  if (signal == SIGTERM) {
    if (void (*const chained)(int) = sigterm_before.load()) chained(signal);
  }
  errno = error;
}

// Lowers the soft limit of processor time (ulimit -t) below the hard one, at which the system kills the process.
// SIGXCPU then comes early enough for an update and a checkpoint of all threads.
void leave_time_to_save() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return;
  if (limit.rlim_cur < limit.rlim_max) return;  // the user's soft limit comes first
  const auto all = static_cast<double>(limit.rlim_max);
  const double left = std::min(all / 2, std::max(2.0 * usable_processors(), 0.05 * all));
  processor_time_before = limit.rlim_cur;
  limit.rlim_cur = std::max<rlim_t>(1, static_cast<rlim_t>(all - left));
  ::setrlimit(RLIMIT_CPU, &limit);
}

void take_back_time_to_save() {
  rlimit limit{};
  if (processor_time_before && ::getrlimit(RLIMIT_CPU, &limit) == 0) {
    limit.rlim_cur = std::min(*processor_time_before, limit.rlim_max);
    ::setrlimit(RLIMIT_CPU, &limit);
  }
  processor_time_before.reset();
}

bool is_handler(void (*action)(int)) { return action != SIG_DFL && action != SIG_IGN; }

void listen_to(int signal, struct sigaction& old) {
  ::sigaction(signal, nullptr, &old);
  if (old.sa_handler == SIG_IGN) return;
  const bool nobody_watches = ::isatty(STDOUT_FILENO) == 0 && ::isatty(STDERR_FILENO) == 0;
  if (signal == SIGTERM) sigterm_before.store(is_handler(old.sa_handler) ? old.sa_handler : nullptr);
  act(signal, signal == SIGHUP && nobody_watches ? SIG_IGN : note);
}

// Whether the signal still has the action of listen() or note(). The end of a control plane that began before listen()
// has given SIGTERM its earlier action back (comm/control/termination.h).
bool has_our_effect(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == note || (signal == SIGHUP && now.sa_handler == SIG_IGN) ||
         (signal == SIGINT && now.sa_handler == SIG_DFL);
}

}  // namespace

std::string_view name_of_signal(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    case SIGHUP: return "SIGHUP";
    case SIGXCPU: return "SIGXCPU";
    case SIGXFSZ: return "SIGXFSZ";
    default: return "a signal";
  }
}

void EndSignals::listen() {
  const std::lock_guard lock(listening_mutex);
  if (is_listening) return;
  is_listening = true;
  first_signal.store(0);
  answers.store(says_);
  TerminationRequest::leave_to_the_program(true);
  for (std::size_t i = 0; i < kEndSignals.size(); ++i) listen_to(kEndSignals[i], before[i]);
  make_failed_writes_errors();
  leave_time_to_save();
}

EndSignals::~EndSignals() {
  const std::lock_guard lock(listening_mutex);
  if (!is_listening) return;
  for (std::size_t i = 0; i < kEndSignals.size(); ++i) {
    if (has_our_effect(kEndSignals[i])) ::sigaction(kEndSignals[i], &before[i], nullptr);
  }
  take_back_time_to_save();
  TerminationRequest::leave_to_the_program(false);
  is_listening = false;
}

int EndSignals::came() { return first_signal.load(); }

}  // namespace teratron
