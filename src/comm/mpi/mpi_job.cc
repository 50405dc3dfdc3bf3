#include "comm/mpi/mpi_job.h"

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "base/error.h"
#include "comm/lost_rank.h"
#include "comm/mpi/liveness.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/requests.h"

namespace teratron {
namespace {

// How long a process that ends with an error waits for the others to tell theirs, and for MPI to end the job.
constexpr auto kGrace = std::chrono::milliseconds(1500);
constexpr unsigned kLongestEnd = 5;  // seconds

// Everyone's text, by rank. Blocks as MPI does: only for the start, when nobody is watched yet.
std::vector<std::string> gather_texts(const std::string& own, int processes) {
  constexpr int kLongest = 4096;
  check(own.size() < kLongest, "a contact is short");
  std::string padded = own;
  padded.resize(kLongest);
  std::string all(static_cast<std::size_t>(processes) * kLongest, '\0');
  check_mpi(MPI_Allgather(padded.data(), kLongest, MPI_BYTE, all.data(), kLongest, MPI_BYTE, MPI_COMM_WORLD),
            "exchange addresses");
  std::vector<std::string> texts;
  for (int process = 0; process < processes; ++process) {
    texts.emplace_back(all.c_str() + static_cast<std::ptrdiff_t>(process) * kLongest);
  }
  return texts;
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
  Liveness liveness(place.process, place.processes, host);
  const std::vector<std::string> contacts = gather_texts(liveness.contact(), place.processes);
  const std::vector<std::string> jobs = gather_texts(std::to_string(std::random_device()()), place.processes);
  liveness.start(contacts, jobs[0]);
  try {
    const auto world = make_mpi_world(liveness);
    body(*world);
    world->barrier();  // whoever ends while another still works would be taken for lost
  } catch (const LostRank&) {
    throw;  // news of another's failure
  } catch (const std::exception& error) {
    liveness.report_failure(error.what());
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
    MPI_Finalize();
    return;
  }
  std::this_thread::sleep_for(kGrace);
  ::alarm(kLongestEnd);  // MPI may be in no state to end anything
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  ::_exit(exit_code);
}

}  // namespace teratron
