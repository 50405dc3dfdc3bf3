#include "comm/launch.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "comm/mpi/mpi_job.h"
#include "comm/process/process_job.h"
#include "comm/thread/thread_ranks.h"

namespace teratron {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

// The number in an environment variable; 0 where there is none.
int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  int number = 0;
  if (text != nullptr) std::from_chars(text, text + std::char_traits<char>::length(text), number);
  return number;
}

struct Launcher {
  std::string name;
  int processes = 0;
};

Launcher find_launcher() {
  if (const int processes = number_in("OMPI_COMM_WORLD_SIZE"); processes > 0) return {"mpirun", processes};
  // Of the step, not of the allocation, whose variables a batch script sees too.
  if (const int processes = number_in("SLURM_STEP_NUM_TASKS"); processes > 0) return {"srun", processes};
  return {};
}

}  // namespace

LaunchEnvironment detect_launch() {
  const Launcher launcher = find_launcher();
  LaunchEnvironment environment{.launcher = launcher.name, .host = host_name()};
  if (launcher.processes == 0 || (launcher.processes == 1 && (launcher.name == "srun" || !mpi_is_built()))) {
    return environment;
  }
  if (!mpi_is_built()) {
    throw_user_error(
        "{} started {} processes, but this teratron was built without MPI and each would train alone; install "
        "libopenmpi-dev and build again, or start one process and let it run its ranks as threads",
        launcher.name, launcher.processes);
  }
  const MpiPlace place = start_mpi();
  if (place.processes != launcher.processes) {
    throw_user_error(
        "{} started {} processes, but MPI sees {}; under Slurm use srun --mpi=pmix (or another kind that "
        "srun --mpi=list names and this MPI knows)",
        launcher.name, launcher.processes, place.processes);
  }
  environment.kind = RankKind::kProcesses;
  environment.processes = place.processes;
  environment.process = place.process;
  return environment;
}

void run_ranks(const LaunchEnvironment& environment, int ranks, const std::function<void(Communicator& world)>& body) {
  check(ranks >= 1, "there is at least one rank");
  if (environment.kind == RankKind::kThreads) return run_thread_ranks(ranks, environment.host, body);
  if (environment.processes != ranks) {
    throw_user_error(
        "{} started {} processes, but the layout needs {} ranks; start {} processes or choose another layout",
        environment.launcher, environment.processes, ranks, ranks);
  }
  run_process_rank(*make_mpi_job(), environment.host, body);
}

void leave_launch(int exit_code) { leave_mpi(exit_code); }

}  // namespace teratron
