// Signals are noted while somebody listens, SIGINT after one of them ends the process, and what was there before comes
// back.
#include "runtime/end_signals.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include "comm/control/termination.h"

namespace teratron::testing {
namespace {

// End of a child process that runs `body` and exits with its result, and the child's standard error.
struct ChildEnd {
  int exit_code = -1, signal = 0;
  std::string errors;
};

ChildEnd in_child(const std::function<int()>& body) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    ::dup2(pipe[1], STDOUT_FILENO);
    for (const int signal : kEndSignals) std::signal(signal, SIG_DFL);
    ::_exit(body());
  }
  ::close(pipe[1]);
  ChildEnd end;
  std::array<char, 500> buffer{};
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
    end.errors.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

TEST(EndSignals, EachIsNotedOnceAndAnswered) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGXCPU, SIGXFSZ}) {
    const ChildEnd end = in_child([&] {
      EndSignals signals(true);
      signals.listen();
      signals.listen();
      std::raise(signal);
      std::raise(signal == SIGTERM ? SIGUSR1 : SIGTERM);  // the first one counts
      return EndSignals::came();
    });
    EXPECT_EQ(end.exit_code, signal);
    EXPECT_THAT(end.errors, ::testing::HasSubstr("asked to end"));
    EXPECT_EQ(end.errors.find("asked to end"), end.errors.rfind("asked to end"));
  }
}

// tee and grep die of the Ctrl-C that the run answers.
TEST(EndSignals, WhereTheReaderOfItsAnswerIsGoneItIsNotedStill) {
  const ChildEnd end = in_child([] {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) return 0;
    ::dup2(pipe[1], STDERR_FILENO);
    ::close(pipe[0]);
    std::signal(SIGPIPE, SIG_DFL);
    EndSignals signals(true);
    signals.listen();
    std::raise(SIGINT);
    (void)!::write(STDERR_FILENO, "a line", 6);
    return EndSignals::came();
  });
  EXPECT_EQ(end.exit_code, SIGINT);
}

// A pipe that nobody empties, or a terminal that is stopped by Ctrl-S.
TEST(EndSignals, AnAnswerThatWouldWaitIsLeftOut) {
  const ChildEnd end = in_child([] {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_NONBLOCK) != 0) return 0;
    ::dup2(pipe[1], STDERR_FILENO);
    while (::write(STDERR_FILENO, "x", 1) == 1) {
    }
    ::fcntl(STDERR_FILENO, F_SETFL, 0);
    EndSignals signals(true);
    signals.listen();
    ::alarm(20);
    std::raise(SIGTERM);
    return EndSignals::came();
  });
  EXPECT_EQ(end.exit_code, SIGTERM);
}

TEST(EndSignals, AnInterruptAfterAnyEndsTheProcessAtOnce) {
  for (const int first : {SIGINT, SIGTERM, SIGUSR1}) {
    const ChildEnd end = in_child([&] {
      EndSignals signals(false);
      signals.listen();
      std::raise(first);
      std::raise(SIGINT);
      return 0;
    });
    EXPECT_EQ(end.signal, SIGINT) << first;
    EXPECT_EQ(end.errors, "");
  }
}

volatile std::sig_atomic_t own_handler_calls = 0;

TEST(EndSignals, TheProgramsOwnHandlersComeBack) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    for (const bool came : {false, true}) {
      const ChildEnd end = in_child([&] {
        std::signal(signal, [](int) { own_handler_calls = own_handler_calls + 1; });
        {
          EndSignals signals(false);
          signals.listen();
          if (came) std::raise(signal);
        }
        own_handler_calls = 0;
        std::raise(signal);
        return own_handler_calls == 1 ? 42 : 0;
      });
      EXPECT_EQ(end.exit_code, 42) << name_of_signal(signal) << " " << came;
    }
  }
}

// A control plane, which has a TerminationRequest, ends before the command does.
TEST(EndSignals, TheEndOfAControlPlaneLeavesTheHandlerThatWasThereBefore) {
  const ChildEnd own = in_child([] {
    std::signal(SIGTERM, [](int) { own_handler_calls = own_handler_calls + 1; });
    {
      std::optional<TerminationRequest> one, other;
      one.emplace();
      other.emplace();
      one.reset();
      std::raise(SIGTERM);  // only noted
    }
    std::raise(SIGTERM);
    return own_handler_calls == 1 ? 42 : 0;
  });
  EXPECT_EQ(own.exit_code, 42) << "signal " << own.signal;
  const ChildEnd listening = in_child([] {
    EndSignals signals(false);
    signals.listen();
    { const TerminationRequest request; }
    std::raise(SIGTERM);
    return EndSignals::came();
  });
  EXPECT_EQ(listening.exit_code, SIGTERM) << "signal " << listening.signal;
}

// Ranks listen while their control plane runs. Its end undoes their handler of SIGTERM as well as its own.
TEST(EndSignals, TheEndOfAControlPlaneUndoesHandlersMadeDuringIt) {
  const ChildEnd end = in_child([] {
    std::signal(SIGTERM, [](int) { own_handler_calls = own_handler_calls + 1; });
    {
      EndSignals signals(false);
      {
        const TerminationRequest request;
        signals.listen();
      }
      std::raise(SIGTERM);
    }
    std::raise(SIGTERM);
    return own_handler_calls == 2 ? 42 : 0;
  });
  EXPECT_EQ(end.exit_code, 42) << "signal " << end.signal;
}

TEST(EndSignals, TheLimitOfProcessorTimeComesBack) {
  const ChildEnd end = in_child([] {
    rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    if (::setrlimit(RLIMIT_CPU, &limit) != 0) return 0;
    {
      EndSignals signals(false);
      signals.listen();
      if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_cur >= 1000) return 1;
    }
    return ::getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur == 1000 ? 42 : 2;
  });
  EXPECT_EQ(end.exit_code, 42);
}

TEST(EndSignals, HangingUpChangesNothingWhereOutputIsNoTerminal) {
  const ChildEnd end = in_child([] {
    EndSignals signals(true);
    signals.listen();
    std::raise(SIGHUP);
    return EndSignals::came() == 0 ? 42 : 0;
  });
  EXPECT_EQ(end.exit_code, 42);
}

TEST(EndSignals, HangingUpIsARequestWhereOutputIsATerminal) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) GTEST_SKIP() << "there are no terminals";
  const std::string name = ::ptsname(terminal);
  const ChildEnd end = in_child([&] {
    ::dup2(::open(name.c_str(), O_RDWR | O_NOCTTY), STDERR_FILENO);
    EndSignals signals(false);
    signals.listen();
    std::raise(SIGHUP);
    return EndSignals::came();
  });
  ::close(terminal);
  EXPECT_EQ(end.exit_code, SIGHUP);
}

TEST(EndSignals, LeavesIgnoredSignalsIgnored) {
  const ChildEnd end = in_child([] {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    EndSignals signals(true);
    signals.listen();
    std::raise(SIGINT);
    std::raise(SIGINT);
    std::raise(SIGHUP);
    return EndSignals::came() == 0 ? 42 : 0;
  });
  EXPECT_EQ(end.exit_code, 42);
}

TEST(EndSignals, BeforeAndAfterSignalsDoWhatTheyDid) {
  for (const bool after : {false, true}) {
    for (const int signal : kEndSignals) {
      const ChildEnd end = in_child([&] {
        {
          EndSignals signals(true);
          if (after) signals.listen();
          if (!after) std::raise(signal);
        }
        std::raise(signal);
        return 0;
      });
      EXPECT_EQ(end.signal, signal) << after;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
