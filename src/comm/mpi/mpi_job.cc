#include "comm/mpi/mpi_job.h"

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "comm/mpi/mpi_transport.h"

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

class MpiJob final : public ProcessJob {
 public:
  explicit MpiJob(const MpiPlace& place) : place_(place) {}
  int rank() const override { return place_.process; }
  int size() const override { return place_.processes; }
  std::vector<std::string> meet(const std::string& contact) override { return gather_texts(contact, size()); }
  std::unique_ptr<Transport> connect(Liveness& liveness) override { return make_mpi_world(liveness); }

 private:
  const MpiPlace place_;
};

MpiPlace own_place() {
  MpiPlace place;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &place.processes), "tell the number of processes");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &place.process), "tell the process's place");
  return place;
}

}  // namespace

bool mpi_is_built() { return true; }

MpiPlace start_mpi() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "start");
  if (provided < MPI_THREAD_FUNNELED) throw EnvironmentError("this MPI cannot be used by a program with threads");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "set how errors are told");
  return own_place();
}

std::unique_ptr<ProcessJob> make_mpi_job() { return std::make_unique<MpiJob>(own_place()); }

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
