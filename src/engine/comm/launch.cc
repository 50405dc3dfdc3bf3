#include "comm/launch.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/host/host_name.h"
#include "base/host/resources.h"
#include "base/host/threads.h"
#include "comm/control/control_plane.h"
#include "comm/core_share.h"
#include "comm/mpi/mpi_job.h"
#include "comm/thread/thread_group.h"

namespace teratron {
namespace {

// The number in an environment variable; 0 if it is not set or no number.
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
  // Number of the step, not of the allocation, whose variables a batch script sees too.
  if (const int processes = number_in("SLURM_STEP_NUM_TASKS"); processes > 0) return {"srun", processes};
  return {};
}

std::unique_ptr<ControlPlane> job_control;  // of processes: from detect_launch() to leave_launch()

[[noreturn]] void end_process(const std::string& message) {
  std::fflush(stdout);
  std::fputs(fmt::format("error: {}\n", message).c_str(), stderr);
  std::fflush(stderr);
  ::_exit(static_cast<int>(ExitCode::kEnvironment));
}

// A user's limit in whole seconds; nothing where the variable is not set.
std::optional<std::chrono::milliseconds> seconds_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  constexpr int kLeast = 1, kMost = 1'000'000'000;
  int number = 0;
  const char* const end = text + std::char_traits<char>::length(text);
  const auto [read, error] = std::from_chars(text, end, number);
  if (error != std::errc{} || read != end || number < kLeast || number > kMost) {
    throw_user_error("{} is '{}'; it must be whole seconds, {} to {}", variable, text, kLeast, kMost);
  }
  return std::chrono::seconds(number);
}

ControlSettings control_settings(const WatchSettings& watch) {
  ControlSettings settings{.watch = watch, .end_process = end_process};
  settings.longest_meeting = seconds_in("TERATRON_START_TIMEOUT").value_or(settings.longest_meeting);
  return settings;
}

// Refuses processes started by address whose tensors lie in host memory: nothing carries these.
[[noreturn]] void refuse_host_memory(const AddressLaunch& launch) {
  throw_user_error(
      "{} started {} processes by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which is for GPUs (--backend cuda), "
      "whose tensors NCCL moves. Ranks on CPUs need MPI{}: start them by \"mpirun -n {} teratron ..\" or \"srun "
      "--mpi=pmix -n {} teratron ..\", or one process that runs them as threads, with RANK and WORLD_SIZE unset",
      launch.launcher, launch.world_size, mpi_is_built() ? "" : ", and a teratron that was built where MPI was found",
      launch.world_size, launch.world_size);
}

// Makes CUDA, which reads the variable when it starts, load kernels then. Loading a kernel at its first launch may wait
// for all work of the device, and thus for a message that another rank sends only after it has that kernel's result
// (CUDA's programming guide, Lazy Loading).
void load_kernels_at_the_start() { ::setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0); }

void start_at_address(const AddressLaunch& launch, const std::string& bind, LaunchEnvironment& environment) {
  environment.kind = RankKind::kProcesses;
  environment.processes = launch.world_size;
  environment.process = launch.rank;
  environment.launcher = launch.launcher;
  environment.address = launch;
  job_control = std::make_unique<ControlPlane>(Membership{.rank = launch.rank,
                                                          .size = launch.world_size,
                                                          .host = environment.host,
                                                          .point = meeting_point_of(launch, bind)},
                                               control_settings(environment.watch));
}

// Limits this rank's threads to its part of the host's cores, and of the quota of its control group.
void take_share_of_cores(Communicator& world, const std::string& host) {
  const std::vector<std::string> hosts = world.all_gather_host(host);
  const std::vector<std::string> cores = world.all_gather_host(fmt::format("{}", fmt::join(own_processors(), " ")));
  std::vector<std::vector<int>> cores_of_host;
  std::size_t own = 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != host) continue;
    if (rank == static_cast<std::size_t>(world.rank())) own = cores_of_host.size();
    std::istringstream numbers(cores[rank]);
    cores_of_host.emplace_back(std::istream_iterator<int>(numbers), std::istream_iterator<int>());
  }
  int share = core_share(cores_of_host, own);
  if (const int quota = processor_quota(); quota > 0) {
    share = std::min(share, std::max(1, quota / static_cast<int>(cores_of_host.size())));
  }
  set_thread_count(std::min(thread_count(), share));
}

void run_process_rank(const LaunchEnvironment& environment, const std::function<void(Communicator& world)>& body) {
  check(job_control != nullptr, "detect_launch() was called, and its ranks have not run yet");
  const Place::Use place(job_control->place());
  try {
    job_control->meet();
    const auto world = environment.has_mpi()
                           ? make_mpi_world(*job_control)
                           : make_control_world(*job_control, environment.process, environment.processes);
    take_share_of_cores(*world, environment.host);
    body(*world);
    job_control->finish();
  } catch (...) {
    job_control->give_up();
    throw;
  }
  job_control.reset();
}

}  // namespace

std::string launcher_of_process() {
  if (std::getenv("TORCHELASTIC_RUN_ID") != nullptr) return "torchrun";
  if (const Launcher launcher = find_launcher(); launcher.processes > 1) return launcher.name;
  return number_in("WORLD_SIZE") > 1 ? "a job by RANK and WORLD_SIZE" : "";
}

LaunchEnvironment detect_launch(TensorMemory memory, const std::string& bind, const WatchSettings& watch) {
  LaunchEnvironment environment{.host = host_name(), .watch = watch};
  if (memory == TensorMemory::kDevice && !launcher_of_process().empty()) load_kernels_at_the_start();
  const bool is_torchrun = std::getenv("TORCHELASTIC_RUN_ID") != nullptr;
  const Launcher launcher = is_torchrun ? Launcher{} : find_launcher();
  const bool is_alone = launcher.processes == 0 || (launcher.processes == 1 && launcher.name == "srun");
  if (is_alone || !mpi_is_built()) {
    if (const auto launch = find_address_launch(::getenv)) {
      if (memory == TensorMemory::kHost) refuse_host_memory(*launch);
      start_at_address(*launch, bind, environment);
      return environment;
    }
  }
  environment.launcher = launcher.name;
  if (is_alone || (launcher.processes == 1 && !mpi_is_built())) return environment;
  if (!mpi_is_built()) {
    throw_user_error(
        "{} started {} processes, but this teratron was built without MPI and each would train alone; install "
        "libopenmpi-dev and build again, start one process and let it run its ranks as threads, or, for GPUs, set "
        "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each",
        launcher.name, launcher.processes);
  }
  const MpiRank own = start_mpi(control_settings(watch));
  if (own.processes != launcher.processes) {
    throw_user_error(
        "{} started {} processes, but MPI sees {}; under Slurm use srun --mpi=pmix (or another kind that "
        "srun --mpi=list names and this MPI knows)",
        launcher.name, launcher.processes, own.processes);
  }
  environment.kind = RankKind::kProcesses;
  environment.processes = own.processes;
  environment.process = own.process;
  job_control = make_mpi_control_plane(environment.host, control_settings(watch), bind);
  return environment;
}

void run_ranks(const LaunchEnvironment& environment, int ranks, const std::function<void(Communicator& world)>& body) {
  check(ranks >= 1, "there is at least one rank");
  if (environment.kind == RankKind::kThreads)
    return run_thread_ranks(ranks, environment.host, environment.watch, end_process, body);
  if (environment.processes != ranks) {
    throw_user_error(
        "{} started {} processes, but the layout needs {} ranks; start {} processes or choose another layout",
        environment.launcher, environment.processes, ranks, ranks);
  }
  run_process_rank(environment, body);
}

void leave_launch(int exit_code) {
  std::fflush(nullptr);
  if (job_control != nullptr && exit_code != 0 && !job_control->end_is_accounted_for())
    job_control->report_early_end(exit_code);
  job_control.reset();
  leave_mpi(exit_code);
}

}  // namespace teratron
