#include "comm/control/termination.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>

namespace teratron {
namespace {

std::atomic<bool> came_already{false};  // what a signal handler can reach
std::atomic<bool> is_left{false};
static_assert(std::atomic<bool>::is_always_lock_free);

std::mutex mutex_of_requests;
int existing_requests = 0;   // TerminationRequests
struct sigaction before {};  // action of SIGTERM before the first of them

void note(int) { came_already.store(true); }

void act_on_sigterm(void (*action)(int)) {
  struct sigaction wanted {};
  wanted.sa_handler = action;
  wanted.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &wanted, nullptr);
}

}  // namespace

TerminationRequest::TerminationRequest() {
  const std::lock_guard lock(mutex_of_requests);
  if (existing_requests++ > 0) return;
  ::sigaction(SIGTERM, nullptr, &before);
  act_on_sigterm(note);
}

TerminationRequest::~TerminationRequest() {
  const std::lock_guard lock(mutex_of_requests);
  --existing_requests;
  if (ignored_) {
    act_on_sigterm(SIG_IGN);
  } else if (existing_requests == 0) {
    ::sigaction(SIGTERM, &before, nullptr);
  }
}

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
