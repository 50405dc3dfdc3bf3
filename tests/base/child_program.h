// Runs a program as a user would and keeps what came of it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file.h"
#include "base/temporary_folder.h"

namespace teratron::testing {

struct Outcome {
  int exit_code = -1;  // -1: ended by a signal
  std::string output, errors;
};

// A child in a process group of its own, which ends with the test at the latest.
class ChildProgram {
 public:
  // words[0] is looked up in PATH; `environment` ("NAME=value") is added to the caller's; `standard_output` is where
  // its output goes instead of into the Outcome, where given; `standard_input` is what it reads.
  explicit ChildProgram(std::vector<std::string> words, const std::vector<std::string>& environment = {},
                        const std::string& standard_output = "", const std::string& standard_input = "/dev/null")
      : output_(standard_output.empty() ? (folder_.path() / "output").string() : standard_output),
        keeps_output_(standard_output.empty()) {
    std::vector<char*> arguments = pointers(words);
    std::vector<std::string> added = environment;
    std::vector<char*> all = pointers(added);
    all.pop_back();
    for (char** entry = environ; *entry != nullptr; ++entry) all.push_back(*entry);
    all.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, standard_input.c_str(), O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output_.c_str(), O_WRONLY | O_CREAT, 0600);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors().c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    sigset_t defaults;  // a shell's background jobs ignore SIGINT, and what they start would, too
    ::sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) ::sigaddset(&defaults, signal);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    const int failure = ::posix_spawnp(&child_, arguments[0], &actions, &attributes, arguments.data(), all.data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw std::runtime_error("cannot start " + words[0]);
  }
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;
  ~ChildProgram() {
    if (ended_) return;
    ::kill(-child_, SIGTERM);  // mpirun ends its ranks, too
    for (int look = 0; look < 500 && ::waitpid(child_, nullptr, WNOHANG) == 0; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(-child_, SIGKILL);
  }

  pid_t pid() const { return child_; }
  std::string errors_so_far() const { return read_file(errors()); }

  bool has_ended() {
    ended_ = ended_ || ::waitpid(child_, &status_, WNOHANG) != 0;
    return ended_;
  }

  // Throws where it has not ended within `longest`.
  Outcome wait(std::chrono::seconds longest = std::chrono::seconds(600)) {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (!has_ended()) {
      if (std::chrono::steady_clock::now() > end) {
        throw std::runtime_error("a program still runs after " + std::to_string(longest.count()) + " seconds:\n" +
                                 errors_so_far());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    Outcome outcome{.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1, .errors = errors_so_far()};
    if (keeps_output_) outcome.output = read_file(output_);
    return outcome;
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
  }
  std::string errors() const { return (folder_.path() / "errors").string(); }

  const TemporaryFolder folder_;
  const std::string output_;
  const bool keeps_output_;
  pid_t child_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

// Waits until `happened()`, or the program has ended. Throws after a minute.
template <class Happened>
void wait_until(ChildProgram& program, const Happened& happened) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1); !happened() && !program.has_ended();
       std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
    if (std::chrono::steady_clock::now() < end) continue;
    throw std::runtime_error("what a test waits for has not come within a minute:\n" + program.errors_so_far());
  }
}

}  // namespace teratron::testing
