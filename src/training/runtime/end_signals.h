// Signals that ask a long command to end in good order: it finishes what it does, saves and leaves.
#pragma once

#include <array>
#include <csignal>
#include <string_view>

namespace teratron {

// The last two are of limits: of a job's time (ulimit -t), and of the size of a file (ulimit -f).
inline constexpr std::array kEndSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU, SIGXFSZ};
std::string_view name_of_signal(int signal);  // "SIGINT"; of the above

// Of the process; there is one at a time. Until listen() and after it is gone, signals do what they did before.
class EndSignals {
 public:
  // `says`: answers the first signal with a line on standard error, from the handler, since an update may take minutes.
  explicit EndSignals(bool says) : says_(says) {}
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals();

  // From now on these signals are only noted, but for a second SIGINT, which ends the process at once. SIGHUP is
  // ignored where neither standard output nor standard error is a terminal: the terminal that hung up showed nothing of
  // it. Where the soft limit of processor time is the hard one, at which the system kills the process, SIGXCPU comes
  // some seconds before it. A signal that was ignored when the program began (nohup) stays so. A line for a pipe whose
  // reader is gone is lost, and no reason to end (SIGPIPE). Any rank may call it; all calls but the first do nothing.
  void listen();

  static int came();  // the first signal noted; 0: none

 private:
  bool says_;
};

}  // namespace teratron
