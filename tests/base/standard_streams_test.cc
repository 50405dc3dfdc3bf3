// A closed standard stream takes no file's place, and what cannot be written is an error of the write, not the end.
#include "base/host/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>

#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

// The exit code of a child that runs `body`; -1 where a signal ended it.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, AFileNeverGetsTheNumberOfAClosedOne) {
  for (unsigned closed = 0; closed < 8; ++closed) {
    EXPECT_EQ(in_child([closed] {
                for (const int descriptor : {0, 1, 2}) {
                  if ((closed >> descriptor & 1U) != 0) ::close(descriptor);
                }
                open_closed_standard_streams();
                const int file = ::open("/dev/zero", O_RDONLY);
                char byte = 0;
                // A result that a closed stream would lose stays an error.
                if ((closed & 1U) != 0 && ::read(0, &byte, 1) >= 0) return 1;
                if ((closed & 2U) != 0 && ::write(1, "x", 1) >= 0) return 2;
                if ((closed & 4U) != 0 && ::write(2, "x", 1) >= 0) return 3;
                return file > 2 ? 0 : 4;
              }),
              0)
        << closed;
  }
}

TEST(StandardStreams, APipeWhoseReaderIsGoneFailsTheWrite) {
  EXPECT_EQ(in_child([] {
              std::signal(SIGPIPE, SIG_DFL);
              make_failed_writes_errors();
              std::array<int, 2> pipe{};
              if (::pipe(pipe.data()) != 0) return 1;
              ::close(pipe[0]);
              return ::write(pipe[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2;
            }),
            0);
}

TEST(StandardStreams, AFileThatReachesItsLimitFailsTheWrite) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child([&] {
              std::signal(SIGXFSZ, SIG_DFL);
              make_failed_writes_errors();
              const rlimit limit{.rlim_cur = 1, .rlim_max = RLIM_INFINITY};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const int file = ::open((folder / "f").c_str(), O_WRONLY | O_CREAT, 0600);
              if (::write(file, "x", 1) != 1) return 1;
              return ::write(file, "x", 1) < 0 && errno == EFBIG ? 0 : 2;
            }),
            0);
}

TEST(StandardStreams, HandlersThatAreThereStay) {
  EXPECT_EQ(in_child([] {
              std::signal(SIGPIPE, SIG_IGN);
              make_failed_writes_errors();
              return std::signal(SIGPIPE, SIG_DFL) == SIG_IGN ? 0 : 1;
            }),
            0);
}

TEST(StandardStreams, ALineThatCannotBeWrittenIsLostAndNothingElse) {
  for (const char* const target : {"/dev/full", "closed"}) {
    EXPECT_EQ(in_child([&] {
                ::close(2);
                ::open(target, O_WRONLY);
                report_to_user("a line");
                return 0;
              }),
              0);
  }
}

}  // namespace
}  // namespace teratron::testing
