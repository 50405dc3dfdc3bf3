// Starting ranks: threads of this process by default; the processes of mpirun or srun where the program was started
// under one of them (MPI builds only).
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace teratron {

enum class RankKind { kThreads, kMpi };

// Where this process stands before any rank runs.
struct LaunchEnvironment {
  RankKind kind = RankKind::kThreads;
  int processes = 1;     // of the job
  int process = 0;       // this one; 0 does the talking
  std::string launcher;  // "mpirun", "srun" or empty
  std::string host;
};

// Starts MPI where there is a launcher. Call once, first thing, from the main thread. UserError: a launcher started
// several processes and this build has no MPI (every process would train alone).
LaunchEnvironment detect_launch();

// Runs body once a rank: as `ranks` threads with an even share of thread_count() each, or as this process's one rank
// under a launcher. UserError where the launcher started another number of processes than `ranks`. When a rank fails,
// the others are woken wherever they wait and end too; the first failure is rethrown here (under MPI in the process
// that failed, and the others throw LostRank).
void run_ranks(const LaunchEnvironment& environment, int ranks, const std::function<void(Communicator& world)>& body);

}  // namespace teratron
