#include "comm/launch.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "comm/mpi/mpi_job.h"
#include "comm/process/process_job.h"
#include "comm/tcp/rendezvous.h"
#include "comm/tcp/tcp_job.h"
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

// What leave_launch() has to tell, from detect_launch() until the ranks meet.
struct EarlyEnd {
  AddressLaunch launch;
  std::string host;
};
std::optional<EarlyEnd> early_end;

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
  LaunchEnvironment environment{.host = host_name()};
  const auto start_at_address = [&](const AddressLaunch& launch) {
    environment.kind = RankKind::kProcesses;
    environment.processes = launch.world_size;
    environment.process = launch.rank;
    environment.launcher = launch.launcher;
    environment.address = launch;
    early_end = {launch, environment.host};
    return environment;
  };
  const bool is_torchrun = std::getenv("TORCHELASTIC_RUN_ID") != nullptr;
  const Launcher launcher = is_torchrun ? Launcher{} : find_launcher();
  const bool is_alone = launcher.processes == 0 || (launcher.processes == 1 && launcher.name == "srun");
  if (is_alone || !mpi_is_built()) {
    if (const auto launch = find_address_launch(::getenv)) return start_at_address(*launch);
  }
  environment.launcher = launcher.name;
  if (is_alone || (launcher.processes == 1 && !mpi_is_built())) return environment;
  if (!mpi_is_built()) {
    throw_user_error(
        "{} started {} processes, but this teratron was built without MPI and each would train alone; install "
        "libopenmpi-dev and build again, set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each, or start one "
        "process and let it run its ranks as threads",
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
  if (environment.has_mpi()) return run_process_rank(*make_mpi_job(), environment.host, body);
  early_end.reset();
  TcpJob job(*environment.address, environment.host);
  run_process_rank(job, environment.host, body);
}

void leave_launch(int exit_code) {
  if (early_end && exit_code != 0) {
    std::fflush(nullptr);
    report_early_end(early_end->launch, early_end->host, exit_code);
  }
  leave_mpi(exit_code);
}

}  // namespace teratron
