#include "studies/child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace teratron {
namespace {

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the child no longer reads
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t count = ::read(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
}

[[noreturn]] void run_as_child(int descriptor, const std::function<std::string()>& work) {
  int code = 0;
  try {
    write_all(descriptor, work());
  } catch (const std::exception& error) {
    write_all(descriptor, error.what());
    code = 1;
  }
  std::fflush(nullptr);
  ::_exit(code);  // what was registered to run at exit belongs to the parent
}

}  // namespace

std::string in_child_process(const std::function<std::string()>& work) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw_environment_error("cannot make a pipe: {}", std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw_environment_error("cannot start a process: {}", std::strerror(errno));
  if (child == 0) {
    ::close(pipe[0]);
    run_as_child(pipe[1], work);
  }
  ::close(pipe[1]);
  std::string text = read_all(pipe[0]);
  ::close(pipe[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  if (WIFEXITED(status)) throw EnvironmentError(text);
  throw_environment_error("a process was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

}  // namespace teratron
