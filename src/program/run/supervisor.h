// Supervisor: a process that runs a training as its child, and starts it again from its last checkpoint when it died.
//
//   end of the child                                                  then
//   exit code 3: a lost rank, the watchdog, the machine               starts again
//   a signal of crashes and kills, or 128 + that of a launcher        starts again
//   all others: done, wrong input, divergence, a bug, a signal that   passed on
//   asks for an orderly end
//
// Two starts in a row that die before their first update are the last: a third would, too.
//
// The child has a process group of its own and does not read from a terminal. The supervisor passes on signals that ask
// for an end, and starts no child after them. Signals of a terminal's keys, Ctrl-Z too, go to the child's whole group.
// If the supervisor is gone, the child gets SIGTERM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace teratron {

struct Supervision {
  std::int64_t restarts = 0;       // at most
  std::filesystem::path save;      // folder of the run's checkpoints and metrics.jsonl
  std::vector<std::string> start;  // program and arguments of the first start
  // Arguments that make a start resume from `save`.
  std::vector<std::string> resume;
  double exit_minutes = 0;                           // of --exit-duration-in-mins, from the first start on; 0: no limit
  std::function<void(const std::string& line)> say;  // for people
};

// Returns the exit code of the last child; 128 + its signal, where one ended it. EnvironmentError: it cannot be
// started. Called by a process that has one thread.
int supervise(const Supervision& supervision);

}  // namespace teratron
