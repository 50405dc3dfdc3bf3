#include "comm/mpi/mpi_job.h"

#include <mpi.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "comm/mpi/mpi_requests.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

// Times in which a process that ends with an error waits for the others to print theirs, and for MPI to end the job.
// They are shorter than the patience of the others' control threads (control_thread.cc), so that the rank that failed
// ends first and mpirun returns its exit code.
constexpr auto kGrace = std::chrono::milliseconds(1000);
constexpr unsigned kLongestEnd = 5;         // seconds
constexpr unsigned kLongestFarewell = 120;  // seconds, of MPI's own end
// MPI_Init has just synchronised the processes.
constexpr auto kLongestBroadcast = std::chrono::seconds(10);
constexpr std::size_t kMeetingText = 8192;  // bytes, a zero at the end among them

// While it exists, prints every few seconds that this process waits in MPI_Init, and ends the process after the
// longest time that a meeting may take.
class StartWatch {
 public:
  explicit StartWatch(const ControlSettings& settings) : thread_([this, settings] { run(settings); }) {}
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;
  ~StartWatch() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void run(const ControlSettings& settings) {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    const auto end = start + settings.longest_meeting;
    for (auto next = start + settings.notice_interval;
         !changed_.wait_until(lock, std::min(next, end), [&] { return done_; });) {
      const auto now = Clock::now();
      if (now >= end) {
        settings.end_process(
            fmt::format("not all processes of this MPI job came to MPI_Init within {:g} seconds; "
                        "look for one that was stopped or waits for its files",
                        std::chrono::duration<double>(settings.longest_meeting).count()));
      }
      if (now < next) continue;
      next += settings.notice_interval;
      std::fputs(fmt::format("waiting in MPI_Init for the other processes ({:.0f} s)\n",
                             std::chrono::duration<double>(now - start).count())
                     .c_str(),
                 stderr);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

long long_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

// Whether all processes run on this host, by variables that mpirun and srun set.
bool is_on_one_host() {
  const long processes = long_in("OMPI_COMM_WORLD_SIZE");
  return (processes > 0 && long_in("OMPI_COMM_WORLD_LOCAL_SIZE") == processes) || long_in("SLURM_STEP_NUM_NODES") == 1;
}

// Keeps MPI from opening ports to the network. Open MPI's TCP transport listens at all addresses of the host, and one
// connection that a stranger holds open stops the job forever; other transports open ports too. So ranks of one host
// move their bytes through shared memory, or by TCP on the loopback interface if there is too little of it.
void keep_to_this_host() {
  for (const char* const variable : {"OMPI_MCA_btl", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude"}) {
    if (std::getenv(variable) != nullptr) return;
  }
  constexpr std::uint64_t kOfARank = std::uint64_t{16} << 20;  // bytes; Open MPI takes 4 MiB and some
  const auto ranks = static_cast<std::uint64_t>(
      std::max({1L, long_in("OMPI_COMM_WORLD_LOCAL_SIZE"), long_in("SLURM_STEP_NUM_TASKS")}));
  struct statvfs shared {};
  const bool is_enough =
      ::statvfs("/dev/shm", &shared) == 0 && std::uint64_t{shared.f_bavail} * shared.f_frsize >= ranks * kOfARank;
  if (is_enough) {
    ::setenv("OMPI_MCA_btl", "self,vader", 0);  // of Open MPI 4; a name of "sm" in later ones
  } else {
    ::setenv("OMPI_MCA_btl_tcp_if_include", "lo", 0);
  }
}

MpiRank own_mpi_rank() {
  MpiRank own;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &own.processes), "get the number of processes");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &own.process), "get the process's rank");
  return own;
}

// The first rank's text, on every rank.
std::string broadcast_text(const std::string& own) {
  std::array<char, kMeetingText> text{};
  check(own.size() < text.size(), "the meeting point is a short text");
  own.copy(text.data(), own.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(text.data(), static_cast<int>(text.size()), MPI_BYTE, 0, MPI_COMM_WORLD, &request),
            "broadcast the meeting point");
  const auto start = Clock::now();
  for (int done = 0; done == 0;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "broadcast the meeting point");
    if (Clock::now() - start > kLongestBroadcast) {
      throw_environment_error("rank 0 did not say where it listens within {} seconds after MPI_Init; it was stopped",
                              kLongestBroadcast.count());
    }
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return text.data();
}

}  // namespace

bool mpi_is_built() { return true; }

MpiRank start_mpi(const ControlSettings& settings) {
  if (is_on_one_host()) keep_to_this_host();
  const StartWatch watch(settings);
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "start");
  if (provided < MPI_THREAD_FUNNELED) throw EnvironmentError("this MPI cannot be used by a program with threads");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "set the error handler");
  return own_mpi_rank();
}

// The text: secret, port, the first rank's host and its addresses.
std::unique_ptr<ControlPlane> make_mpi_control_plane(const std::string& host, const ControlSettings& settings,
                                                     const std::string& bind) {
  const MpiRank mpi = own_mpi_rank();
  Socket listener;
  std::string text;
  if (mpi.process == 0) {
    const std::string address = bind.empty() && is_on_one_host() ? "127.0.0.1" : bind;
    listener = listen_at(0, address);
    if (!listener) {
      throw_environment_error("cannot listen on {}{}: {}{}", host, address.empty() ? "" : " at " + address,
                              std::strerror(errno), bind.empty() ? "" : "; give --bind an address of that host");
    }
    std::random_device random;
    text = fmt::format("{:08x}{:08x}{:08x}{:08x} {} {}", random(), random(), random(), random(), port_of(listener),
                       host.empty() ? "?" : host);
    for (const std::string& own : address.empty() ? own_addresses() : std::vector{address}) {
      // A host of many containers has more addresses than the text has room for.
      if (text.size() + 1 + own.size() < kMeetingText) text += " " + own;
    }
  }
  std::istringstream words(broadcast_text(text));
  Membership own{.rank = mpi.process, .size = mpi.processes, .host = host};
  std::string first_host, port;
  words >> own.point.secret >> port >> first_host;
  own.point.ports = {static_cast<std::uint16_t>(number_from(port))};
  own.point.name = fmt::format("{}:{}", first_host, port);
  for (std::string address; words >> address;) {
    if (address != "127.0.0.1" || first_host == host) own.point.hosts.push_back(address);
  }
  return std::make_unique<ControlPlane>(std::move(own), settings, std::move(listener));
}

void leave_mpi(int exit_code) {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (started == 0 || ended != 0) return;
  std::fflush(nullptr);
  if (exit_code == 0) {
    ::alarm(kLongestFarewell);  // MPI waits for everyone here
    MPI_Finalize();
    ::alarm(0);
    return;
  }
  // A rank that ends because it lost another one leaves that one the time to end first.
  std::this_thread::sleep_for(exit_code == static_cast<int>(ExitCode::kEnvironment) ? 2 * kGrace : kGrace);
  ::alarm(kLongestEnd);  // MPI may be in no state to end anything
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  ::_exit(exit_code);
}

void mpi_all_reduce(float* values, std::int64_t count) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "reduce");
}

}  // namespace teratron
