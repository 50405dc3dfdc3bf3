// Starting ranks: threads of this process by default; the processes of mpirun or srun where the program was started
// under one of them (MPI builds only).
//
// What a program does: detect_launch() first thing, run_ranks() with its work, leave_launch() last thing.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace teratron {

enum class RankKind { kThreads, kProcesses };

// Where this process stands before any rank runs.
struct LaunchEnvironment {
  RankKind kind = RankKind::kThreads;
  int processes = 1;     // of the job
  int process = 0;       // this one; 0 does the talking
  std::string launcher;  // "mpirun", "srun" or empty
  std::string host;
};

// Starts MPI where there is a launcher (one process under srun is taken for an interactive shell: threads). Call once,
// first thing, from the main thread. UserError: a launcher started several processes and this build has no MPI (every
// process would train alone), or the launcher and MPI disagree about their number.
LaunchEnvironment detect_launch();

// Runs body once a rank: as `ranks` threads with an even share of thread_count() each, or as this process's one rank
// under a launcher, with thread_count() threads but no more than its share of the host's cores. UserError where the
// launcher started another number of processes than `ranks`. When a rank fails, the others are woken wherever they wait
// and end too; the first failure is rethrown here (under MPI in the process that failed; the others throw LostRank, or
// are ended with its message where they do not wait).
void run_ranks(const LaunchEnvironment& environment, int ranks, const std::function<void(Communicator& world)>& body);

// Call last, when the process has told what went wrong, with the exit code main is to return. Without MPI it does
// nothing. Under MPI, 0 leaves the job in an orderly way and returns; anything else flushes stdout and stderr, gives
// the other processes a moment to tell what they saw, and ends this one without returning, since MPI's own end would
// wait for the ranks that are gone. mpirun's exit code is then that of the first process that ended.
void leave_launch(int exit_code);

}  // namespace teratron
