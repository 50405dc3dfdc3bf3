// Starting ranks: threads of this process by default; the processes of a launcher where the program was started by one.
// Those are mpirun and srun (MPI builds only), and whatever tells each process the address of the first one, by the
// variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: torchrun, Kubernetes' PyTorchJob, a loop in a shell.
//
// What a program does: detect_launch() first thing, run_ranks() with its work, leave_launch() last thing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "comm/tcp/address_launch.h"

namespace teratron {

enum class RankKind { kThreads, kProcesses };

// Where this process stands before any rank runs.
struct LaunchEnvironment {
  RankKind kind = RankKind::kThreads;
  int processes = 1;     // of the job
  int process = 0;       // this one; 0 does the talking
  std::string launcher;  // "mpirun", "srun", "torchrun", "the job at ADDRESS:PORT" or empty
  std::string host;
  std::optional<AddressLaunch> address;  // of processes that meet without MPI
  bool has_mpi() const { return kind == RankKind::kProcesses && !address; }
  // What measurements of one kind of ranks are told from another's by.
  std::string ranks_are() const {
    if (kind == RankKind::kThreads) return "threads";
    return has_mpi() ? "processes" : "processes by address";
  }
};

// Finds the launcher: torchrun, which may itself run under srun, before mpirun, srun (one process under which is taken
// for an interactive shell: threads) and other addresses. Starts MPI where that is what its processes have. Call once,
// first thing, from the main thread. UserError: a launcher started several processes, but this build has no MPI and
// they have no address (every process would train alone), the launcher and MPI disagree about their number, or
// variables are missing or wrong (comm/tcp/address_launch.h).
LaunchEnvironment detect_launch();

// Runs body once a rank: as `ranks` threads with an even share of thread_count() each, or as this process's one rank
// under a launcher, with thread_count() threads but no more than its share of the host's cores. UserError where the
// launcher started another number of processes than `ranks`, EnvironmentError where they do not find each other. When a
// rank fails, the others are woken wherever they wait and end too; the first failure is rethrown here (of processes, in
// the one that failed; the others throw LostRank, or are ended with its message where they do not wait).
void run_ranks(const LaunchEnvironment& environment, int ranks, const std::function<void(Communicator& world)>& body);

// Call last, when the process has told what went wrong, with the exit code main is to return. Under MPI, 0 leaves the
// job in an orderly way and returns; anything else flushes stdout and stderr, gives the other processes a moment to
// tell what they saw, and ends this one without returning, since MPI's own end would wait for the ranks that are gone.
// mpirun's exit code is then that of the first process that ended. Processes without MPI that end with an error before
// they have met the others tell them, so that nobody waits; that takes as long as those take to come, half a minute at
// most.
void leave_launch(int exit_code);

}  // namespace teratron
