// Signals that ask a long command to end in good order: it finishes its update, saves and exits.
#pragma once

#include <array>
#include <csignal>
#include <string_view>

namespace teratron {

// SIGXCPU and SIGXFSZ come at limits: of processor time (ulimit -t), of the size of a file (ulimit -f).
inline constexpr std::array kEndSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU, SIGXFSZ};
std::string_view name_of_signal(int signal);  // "SIGINT"

// Listener of the process; there is one at a time. Before listen() and after the destructor signals have their old
// effects.
class EndSignals {
 public:
  // `says`: the handler answers the first signal with a line on standard error, since an update may take minutes.
  explicit EndSignals(bool says) : says_(says) {}
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals();

  // Records these signals from now on; after the first, SIGINT ends the process at once. Any rank may call it; only the
  // first call counts.
  // - SIGHUP is ignored where neither standard output nor standard error is a terminal.
  // - A signal that was ignored when the program began (nohup) stays ignored.
  // - SIGPIPE ends nothing: lines for a pipe whose reader has ended are lost.
  // - Where the soft limit of processor time is the hard one, it is lowered, so that SIGXCPU leaves time to save.
  void listen();

  static int came();  // first recorded signal; 0: none

 private:
  bool says_;
};

}  // namespace teratron
