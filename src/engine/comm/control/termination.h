// SIGTERM in a process of a job: mpirun and torchrun send it to the ranks that are left when one died, mpirun about a
// second before SIGKILL. That is time enough to find the dead rank and report it, which the default action would not.
#pragma once

namespace teratron {

// While one exists, SIGTERM is only noted; after the last one it has its earlier action again. A process has one for
// its control plane; tests with several control planes have more.
class TerminationRequest {
 public:
  TerminationRequest();
  TerminationRequest(const TerminationRequest&) = delete;
  TerminationRequest& operator=(const TerminationRequest&) = delete;
  ~TerminationRequest();

  bool came() const;
  // While true, the program ends itself in good order after SIGTERM (runtime/end_signals.h), and nobody calls obey().
  static void leave_to_the_program(bool leave);
  static bool is_left_to_the_program();
  void ignore_from_now_on();       // until the process ends, which comes soon: it is about to print the reason
  [[noreturn]] void obey() const;  // ends the process as the default action would have

 private:
  bool ignored_ = false;
};

}  // namespace teratron
