#include "runtime/end_signals.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <mutex>
#include <optional>

#include "base/host/resources.h"
#include "base/host/standard_streams.h"
#include "comm/control/termination.h"

namespace teratron {
namespace {

// What a handler can reach.
std::atomic<int> first_signal{0};
std::atomic<bool> answers{false};
std::atomic<void (*)(int)> sigterm_before{nullptr};  // of the control plane, which waits for it too
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<void (*)(int)>::is_always_lock_free);

std::mutex listening_mutex;
bool is_listening = false;
std::array<struct sigaction, kEndSignals.size()> before{};

constexpr std::string_view kAnswer =
    "\nasked to end: this update is finished, then saved if there is a --save; SIGINT (Ctrl-C) again ends at once\n";

void note(int signal) {
  const int error = errno;
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal) && answers.load()) {
    // Not where it would wait: behind a terminal that is stopped, or a pipe that is full.
    pollfd look{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&look, 1, 0) == 1) (void)!::write(STDERR_FILENO, kAnswer.data(), kAnswer.size());
  }
  if (signal == SIGTERM) {
    if (void (*const chained)(int) = sigterm_before.load()) chained(signal);
  }
  errno = error;
}

// The system kills a process at its hard limit of processor time (ulimit -t), which is the soft one too unless a user
// says otherwise. A timer asks for the end before that, early enough for an update and a checkpoint of all threads.
class EndBeforeHardLimit {
 public:
  EndBeforeHardLimit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return;
    if (limit.rlim_cur < limit.rlim_max) return;  // its signal comes first
    const auto all = static_cast<double>(limit.rlim_max);
    const double left = std::min(all / 2, std::max(2.0 * usable_processors(), 0.05 * all));
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGXCPU;
    if (::timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer_) != 0) return;
    is_set_ = true;
    itimerspec when{};
    const double at = std::max(1e-3, all - left);
    when.it_value.tv_sec = static_cast<time_t>(at);
    when.it_value.tv_nsec = static_cast<long>(1e9 * (at - std::floor(at)));
    ::timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
  }
  EndBeforeHardLimit(const EndBeforeHardLimit&) = delete;
  EndBeforeHardLimit& operator=(const EndBeforeHardLimit&) = delete;
  ~EndBeforeHardLimit() {
    if (is_set_) ::timer_delete(timer_);
  }

 private:
  timer_t timer_{};
  bool is_set_ = false;
};
std::optional<EndBeforeHardLimit> end_before_hard_limit;

bool is_handler(void (*action)(int)) { return action != SIG_DFL && action != SIG_IGN; }

void listen_to(int signal, struct sigaction& old) {
  ::sigaction(signal, nullptr, &old);
  if (old.sa_handler == SIG_IGN) return;
  struct sigaction wanted {};
  const bool nobody_watches = ::isatty(STDOUT_FILENO) == 0 && ::isatty(STDERR_FILENO) == 0;
  wanted.sa_handler = signal == SIGHUP && nobody_watches ? SIG_IGN : note;
  wanted.sa_flags = SA_RESTART;
  if (signal == SIGINT) wanted.sa_flags |= static_cast<int>(SA_RESETHAND);  // the second one finds the default
  if (signal == SIGTERM) sigterm_before.store(is_handler(old.sa_handler) ? old.sa_handler : nullptr);
  ::sigaction(signal, &wanted, nullptr);
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
  end_before_hard_limit.emplace();
}

EndSignals::~EndSignals() {
  const std::lock_guard lock(listening_mutex);
  if (!is_listening) return;
  end_before_hard_limit.reset();
  for (std::size_t i = 0; i < kEndSignals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kEndSignals[i], nullptr, &now);
    // The control plane may be gone by now, and its handler with it.
    if (kEndSignals[i] == SIGTERM && is_handler(before[i].sa_handler)) before[i].sa_handler = SIG_DFL;
    if (now.sa_handler == note || kEndSignals[i] == SIGHUP) ::sigaction(kEndSignals[i], &before[i], nullptr);
  }
  TerminationRequest::leave_to_the_program(false);
  is_listening = false;
}

int EndSignals::came() { return first_signal.load(); }

}  // namespace teratron
