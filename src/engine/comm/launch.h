// Starts ranks: threads of this process by default; the processes of a launcher if one started the program. Launchers
// are mpirun and srun (in builds with MPI), and everything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for
// each process: torchrun, Kubernetes' PyTorchJob, a loop in a shell.
//
// A program calls detect_launch() first, run_ranks() with its work, and leave_launch() last.
//
// TERATRON_START_TIMEOUT (seconds, 300 by default) limits how long processes wait for one another at the start. Later
// on a watch (comm/watch.h) ends a job that stands, with exit code 3.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "comm/control/address_launch.h"
#include "comm/watch.h"

namespace teratron {

enum class RankKind { kThreads, kProcesses };

// Rank and launcher of this process, before any rank runs.
struct LaunchEnvironment {
  RankKind kind = RankKind::kThreads;
  int processes = 1;     // of the job
  int process = 0;       // this one; process 0 prints
  std::string launcher;  // "mpirun", "srun", "torchrun", "the job at ADDRESS:PORT" or empty
  std::string host;
  std::optional<AddressLaunch> address;  // of processes without MPI
  WatchSettings watch;
  bool has_mpi() const { return kind == RankKind::kProcesses && !address; }
  // The kind of ranks, as measurements record it.
  std::string ranks_are() const {
    if (kind == RankKind::kThreads) return "threads";
    return has_mpi() ? "processes" : "processes by address";
  }
};

// Kind of memory that the ranks' tensors lie in.
enum class TensorMemory { kHost, kDevice };

// Finds the launcher: torchrun, which may itself run under srun, before mpirun, srun (one process under which is taken
// for an interactive shell: threads) and other launchers by address. Starts MPI if its processes have it, and the
// control plane (comm/control/control_plane.h) of any kind of processes. Call once, first thing, from the main thread.
// UserError: processes by address whose tensors lie in host memory, since only NCCL connects those; several processes
// of mpirun or srun in a build without MPI (each would train alone); the launcher and MPI disagree about their number;
// variables are missing or wrong (comm/control/address_launch.h). `bind`: the address that the first process listens at
// while the others come; empty: chosen automatically (docs/guide/clusters.md).
LaunchEnvironment detect_launch(TensorMemory memory, const std::string& bind = "", const WatchSettings& watch = {});

// Launcher of this process, by its environment: "torchrun", of one process too; of several "mpirun", "srun" or
// "a job by RANK and WORLD_SIZE"; empty: none.
std::string launcher_of_process();

// Runs body once a rank: as `ranks` threads with an even share of thread_count() each, or as this process's one rank
// under a launcher, with thread_count() threads but no more than its share of the host's cores. UserError if the
// launcher started another number of processes than `ranks`, EnvironmentError if they do not find each other. When a
// rank fails, the others wake up and end, too. The first failure is rethrown here. Among processes, only the one that
// failed rethrows it; the others throw LostRank, or are ended with its message if they do not wait.
void run_ranks(const LaunchEnvironment& environment, int ranks, const std::function<void(Communicator& world)>& body);

// Call last, after the error was printed, with the exit code that main is to return. A process that ends with an error
// before all have met notifies the others, so that they do not wait; it looks for them half a minute at most. Under
// MPI, 0 leaves the job in an orderly way and returns. Any other code flushes stdout and stderr, gives the other
// processes a moment to print, and ends this one without returning, since MPI's own end would wait for lost ranks.
// mpirun's exit code is then that of the first process that ended.
void leave_launch(int exit_code);

}  // namespace teratron
