#include "comm/mpi/mpi_job.h"

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/threads.h"
#include "comm/core_share.h"
#include "comm/lost_rank.h"
#include "comm/mpi/liveness.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/requests.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

// How long a process that ends with an error waits for the others to tell theirs, and for MPI to end the job.
constexpr auto kGrace = std::chrono::milliseconds(1500);
constexpr unsigned kLongestEnd = 5;  // seconds
// How long processes may lie apart when they meet for the first and for the last time, before and after anybody is
// watched: what they do there is to open their files.
constexpr auto kLongestStart = std::chrono::seconds(120);
constexpr unsigned kLongestFarewell = 120;  // seconds

// Everyone's text, by rank: only for the start, when nobody is watched yet. EnvironmentError: somebody does not come.
std::vector<std::string> gather_texts(const std::string& own, int processes) {
  constexpr int kLongest = 4096;
  check(own.size() < kLongest, "a contact is short");
  std::string padded = own;
  padded.resize(kLongest);
  std::string all(static_cast<std::size_t>(processes) * kLongest, '\0');
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(padded.data(), kLongest, MPI_BYTE, all.data(), kLongest, MPI_BYTE, MPI_COMM_WORLD, &request),
            "exchange addresses");
  const Clock::time_point start = Clock::now();
  for (int done = 0; done == 0;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "exchange addresses");
    if (Clock::now() - start > kLongestStart) {
      throw_environment_error(
          "not all of the {} processes came to the start within {} seconds; look for one that was "
          "stopped or waits for its files",
          processes, kLongestStart.count());
    }
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<std::string> texts;
  for (int process = 0; process < processes; ++process) {
    texts.emplace_back(all.c_str() + static_cast<std::ptrdiff_t>(process) * kLongest);
  }
  return texts;
}

[[noreturn]] void end_process(const std::string& message) {
  std::fflush(stdout);
  std::fputs(fmt::format("error: {}\n", message).c_str(), stderr);
  std::fflush(stderr);
  ::_exit(static_cast<int>(ExitCode::kEnvironment));  // mpirun notices and ends the others
}

// The cores of a host are shared out among its ranks, and none uses more threads than its part.
void take_share_of_cores(Communicator& world, const std::string& host) {
  std::vector<std::vector<int>> cores_of_host;
  std::size_t own = 0;
  const std::vector<std::string> everyone = world.all_gather_host(host + "\n" + to_text(own_cores()));
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string& text = everyone[static_cast<std::size_t>(rank)];
    const std::size_t line_end = text.find('\n');
    if (text.substr(0, line_end) != host) continue;
    if (rank == world.rank()) own = cores_of_host.size();
    cores_of_host.push_back(cores_from_text(text.substr(line_end + 1)));
  }
  set_thread_count(std::min(thread_count(), core_share(cores_of_host, own)));
}

}  // namespace

bool mpi_is_built() { return true; }

MpiPlace start_mpi() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "start");
  if (provided < MPI_THREAD_FUNNELED) throw EnvironmentError("this MPI cannot be used by a program with threads");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "set how errors are told");
  MpiPlace place;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &place.processes), "tell the number of processes");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &place.process), "tell the process's place");
  return place;
}

void run_mpi_rank(const std::string& host, const std::function<void(Communicator& world)>& body) {
  MpiPlace place;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &place.processes), "tell the number of processes");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &place.process), "tell the process's place");
  Liveness liveness(place.process, place.processes, host, end_process);
  const std::vector<std::string> contacts = gather_texts(liveness.contact(), place.processes);
  const std::vector<std::string> jobs = gather_texts(std::to_string(std::random_device()()), place.processes);
  liveness.start(contacts, jobs[0]);
  try {
    const auto world = make_mpi_world(liveness);
    take_share_of_cores(*world, host);
    body(*world);
    liveness.expect_farewells();
    world->barrier();  // whoever ends while another still works would be taken for lost
  } catch (const LostRank&) {
    throw;  // news of another's failure
  } catch (const std::exception& error) {
    liveness.report_failure(error.what());
    throw;
  } catch (...) {
    liveness.report_failure("an exception without a message");
    throw;
  }
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
  std::this_thread::sleep_for(kGrace);
  ::alarm(kLongestEnd);  // MPI may be in no state to end anything
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  ::_exit(exit_code);
}

void mpi_all_reduce(float* values, std::int64_t count) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "reduce");
}

}  // namespace teratron
