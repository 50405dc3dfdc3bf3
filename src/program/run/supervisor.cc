#include "run/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "checkpoint/native/folders.h"
#include "runtime/end_signals.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr int kSignalled = 128;
constexpr double kLeastMinutes = 1e-3;  // of --exit-duration-in-mins, of which 0 means no limit
// Signals of programs that are killed or crash. SIGALRM: MPI could not end a process (comm/mpi/mpi_job.cc).
constexpr std::array kDeadly = {SIGKILL, SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS, SIGALRM};

// Signals of the terminal's keys that reach the supervisor's group alone, beside those of EndSignals.
constexpr std::array kKeySignals = {SIGQUIT, SIGTSTP};

// Signals of EndSignals and of keys, and SIGCHLD, wait in a queue while one exists.
class QueuedSignals {
 public:
  QueuedSignals() {
    ::sigemptyset(&queued_);
    for (const int signal : kEndSignals) ::sigaddset(&queued_, signal);
    for (const int signal : kKeySignals) ::sigaddset(&queued_, signal);
    ::sigaddset(&queued_, SIGCHLD);
    ::signal(SIGCHLD, SIG_DFL);  // where it was ignored, no end of a child is seen
    ::sigprocmask(SIG_BLOCK, &queued_, &before_);
  }
  QueuedSignals(const QueuedSignals&) = delete;
  QueuedSignals& operator=(const QueuedSignals&) = delete;
  ~QueuedSignals() { restore(); }

  void restore() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  // Lets one of them have its effect on this process.
  static void yield_to(int signal) {
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, signal);
    ::raise(signal);
    ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
    ::sigprocmask(SIG_BLOCK, &one, nullptr);
  }
  // The next one, or nothing for a second: another thread of the process may have taken a SIGCHLD, and ignored it.
  std::optional<siginfo_t> next() const {
    siginfo_t info{};
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    return ::sigtimedwait(&queued_, &info, &second) < 0 ? std::nullopt : std::optional(info);
  }

 private:
  sigset_t queued_{}, before_{};
};

// In the child: leaves the group of the supervisor, so that a signal to that whole group (Ctrl-C, `timeout`, a
// scheduler) reaches the child once, passed on; it would take a second SIGINT for impatience. A group in the background
// may not use the terminal as it likes: reads get nothing, and writes are not stopped.
void leave_group() {
  ::setpgid(0, 0);
  for (const int signal : {SIGTTIN, SIGTTOU}) ::signal(signal, SIG_IGN);
  if (::isatty(STDIN_FILENO) == 0) return;
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
}

// In the child: becomes the program, or writes errno to `report`.
[[noreturn]] void become(const std::vector<std::string>& words, pid_t parent, const QueuedSignals& signals,
                         int report) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kSignalled + SIGTERM);  // it is gone already
  leave_group();
  signals.restore();
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  (void)!::write(report, &error, sizeof(error));
  ::_exit(static_cast<int>(ExitCode::kEnvironment));
}

pid_t start_child(const std::vector<std::string>& words, const QueuedSignals& signals) {
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) throw_environment_error("cannot make a pipe: {}", std::strerror(errno));
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become(words, parent, signals, report[1]);
  ::close(report[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0 && ::read(report[0], &error, sizeof(error)) == sizeof(error)) ::waitpid(child, nullptr, 0);
  ::close(report[0]);
  if (error != 0) throw_environment_error("cannot start '{}': {}", words.front(), std::strerror(error));
  return child;
}

// End of a child.
struct ChildEnd {
  int status = 0;      // of waitpid()
  bool asked = false;  // a signal asked for it

  // A launcher passes the signal that ended a rank on in this form, too.
  int exit_code() const { return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status); }
  bool is_failure() const {
    if (asked) return false;
    return exit_code() == static_cast<int>(ExitCode::kEnvironment) ||
           std::ranges::find(kDeadly, exit_code() - kSignalled) != kDeadly.end();
  }
  std::string text() const {
    const int code = exit_code();
    if (code <= kSignalled) return fmt::format("exit code {}", code);
    const char* const name = ::sigabbrev_np(code - kSignalled);
    return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", code - kSignalled);
  }
};

// Passes a signal on to the child; one of the terminal's keys to its whole group, as the terminal would.
void pass_on(const siginfo_t& info, pid_t child) {
  ::kill(info.si_code > 0 ? -child : child, info.si_signo);
  if (info.si_signo != SIGTSTP) return;
  QueuedSignals::yield_to(SIGTSTP);  // returns when the shell lets both go on
  ::kill(-child, SIGCONT);
}

ChildEnd await(pid_t child, const QueuedSignals& signals) {
  ChildEnd end;
  while (true) {
    const std::optional<siginfo_t> info = signals.next();
    if (!info || info->si_signo == SIGCHLD) {
      if (::waitpid(child, &end.status, WNOHANG) == child && (WIFEXITED(end.status) || WIFSIGNALED(end.status)))
        return end;
      continue;
    }
    end.asked = end.asked || info->si_signo != SIGTSTP;
    pass_on(*info, child);
  }
}

// Iteration of the current checkpoint; 0: none.
std::int64_t saved_iteration(const fs::path& save) {
  std::int64_t iteration = 0;
  std::ifstream(save / kTrackerFile) >> iteration;
  return iteration;
}

// Last iteration in metrics.jsonl; 0: none.
std::int64_t reported_iteration(const fs::path& metrics) {
  constexpr std::streamoff kTail = 1 << 16;
  std::ifstream file(metrics, std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  if (size <= 0) return 0;
  file.seekg(std::max<std::streamoff>(0, size - kTail));
  std::int64_t last = 0;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("iteration") && json["iteration"].is_number_integer()) {
      last = json["iteration"];
    }
  }
  return last;
}

fs::file_time_type change_of(const fs::path& file) {
  std::error_code none;
  return fs::last_write_time(file, none);
}

// Updates that the runs of a folder have made, by what they left there.
class MadeUpdates {
 public:
  explicit MadeUpdates(const fs::path& save) : save_(save) { begin(); }
  void begin() {
    saved_ = saved_iteration(save_);
    changed_ = change_of(metrics());
  }
  // Whether a run has made updates since begin(). A run that begins drops the lines that it will write again, and one
  // that goes back to an earlier checkpoint makes that the current one.
  bool were_made() const {
    const std::int64_t saved = saved_iteration(save_);
    return saved > saved_ || (change_of(metrics()) != changed_ && reported_iteration(metrics()) > saved);
  }

 private:
  fs::path metrics() const { return save_ / "metrics.jsonl"; }

  const fs::path save_;
  std::int64_t saved_ = 0;
  fs::file_time_type changed_;
};

}  // namespace

int supervise(const Supervision& supervision) {
  const QueuedSignals signals;
  const double began = monotonic_seconds();
  // A run that goes back to an earlier checkpoint may save the iteration again that was the current one before.
  const auto checkpoint = [&save = supervision.save] {
    return std::pair(saved_iteration(save), change_of(save / kTrackerFile));
  };
  const auto before = checkpoint();
  MadeUpdates updates(supervision.save);
  bool died_at_once = false;  // before its first update, the time before
  for (std::int64_t restarts = 0;; ++restarts) {
    std::vector<std::string> words = supervision.start;
    updates.begin();
    if (checkpoint() != before) {
      words.insert(words.end(), supervision.resume.begin(), supervision.resume.end());
    }
    if (restarts > 0 && supervision.exit_minutes > 0) {
      const double left = supervision.exit_minutes - (monotonic_seconds() - began) / 60;
      words.push_back(fmt::format("--exit-duration-in-mins={}", std::max(left, kLeastMinutes)));
    }
    const ChildEnd end = await(start_child(words, signals), signals);
    if (!end.is_failure()) return end.exit_code();
    const bool dies_at_once = !updates.were_made();
    if (dies_at_once && died_at_once) {
      supervision.say(fmt::format(
          "the run ended by {}, before its first update as the time before, and is not started again", end.text()));
      return end.exit_code();
    }
    died_at_once = dies_at_once;
    if (restarts == supervision.restarts) {
      supervision.say(fmt::format("the run ended by {}; it was started again {}, and no more are asked for", end.text(),
                                  counted(restarts, "time")));
      return end.exit_code();
    }
    const std::string from =
        checkpoint() == before ? "as it began"
                               : fmt::format("from the checkpoint of iteration {}", saved_iteration(supervision.save));
    supervision.say(fmt::format("the run ended by {}; it starts again {} (restart {} of {})", end.text(), from,
                                restarts + 1, supervision.restarts));
  }
}

}  // namespace teratron
