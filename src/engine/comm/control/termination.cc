#include "comm/control/termination.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace teratron {
namespace {

std::atomic<bool> came_already{false};  // what a signal handler can reach
std::atomic<bool> is_left{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note(int) { came_already.store(true); }

void act_on_sigterm(void (*action)(int)) {
  struct sigaction wanted {};
  wanted.sa_handler = action;
  wanted.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &wanted, nullptr);
}

}  // namespace

TerminationRequest::TerminationRequest() { act_on_sigterm(note); }

TerminationRequest::~TerminationRequest() { act_on_sigterm(ignored_ ? SIG_IGN : SIG_DFL); }

void TerminationRequest::ignore_from_now_on() { ignored_ = true; }

void TerminationRequest::leave_to_the_program(bool leave) { is_left.store(leave); }

bool TerminationRequest::is_left_to_the_program() { return is_left.load(); }

bool TerminationRequest::came() const { return came_already.load(); }

void TerminationRequest::obey() const {
  act_on_sigterm(SIG_DFL);
  ::kill(::getpid(), SIGTERM);
  while (true) ::pause();
}

}  // namespace teratron
