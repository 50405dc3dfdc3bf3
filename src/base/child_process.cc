#include "base/child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"

namespace teratron {
namespace {

void write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return;  // nobody reads any more
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

std::string read_all(int descriptor) {
  std::string all;
  std::array<char, 4096> piece{};
  while (true) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return all;
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
}

// Never returns: what follows in the parent is not the child's to do, destructors and buffered output included.
[[noreturn]] void be_the_child(int descriptor, std::span<std::byte> result, const std::function<void()>& work) {
  int status = 0;
  try {
    work();
    write_all(descriptor, result);
  } catch (const std::exception& error) {
    const std::string message = error.what();
    write_all(descriptor, std::as_bytes(std::span(message)));
    status = 1;
  }
  ::_exit(status);
}

}  // namespace

void fill_in_child(std::span<std::byte> result, const std::function<void()>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw_environment_error("cannot make a pipe: {}", std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_the_child(ends[1], result, work);
  }
  ::close(ends[1]);
  const std::string said = child > 0 ? read_all(ends[0]) : "";
  ::close(ends[0]);
  if (child < 0) throw_environment_error("cannot start a process: {}", std::strerror(errno));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw_environment_error("a process of this command was killed by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) throw_environment_error("a process of this command failed: {}", said);
  check_equal(said.size(), result.size(), "bytes of a child's result");
  std::memcpy(result.data(), said.data(), said.size());
}

}  // namespace teratron
