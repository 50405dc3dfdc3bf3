// Runs the teratron binary as a user would and keeps what came of it.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace teratron::testing {

struct Outcome {
  int exit_code = -1;  // -1: ended by a signal
  std::string output, errors;
};

// `standard_output` is where its output goes instead of into the Outcome, where given.
inline Outcome run_teratron(const std::vector<std::string>& arguments, const std::string& standard_output = "") {
  const TemporaryFolder folder;
  const std::string output = standard_output.empty() ? (folder.path() / "output").string() : standard_output;
  const std::string errors = (folder.path() / "errors").string();
  std::vector<std::string> words = {TERATRON_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT, 0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::runtime_error("cannot start " + words[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  Outcome outcome{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .errors = read_file(errors)};
  if (standard_output.empty()) outcome.output = read_file(output);
  return outcome;
}

}  // namespace teratron::testing
