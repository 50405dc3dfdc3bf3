// One rank of a test under a launcher (or, without one, all ranks as threads).
//   program check RANKS              every trial; prints "RANKS ranks of LAUNCHER are exact"
//   program exchange RANKS           host exchanges alone; prints the same
//   program channels RANKS           what ranks on GPUs of their own exchange through channels; prints the same
//   program lose RANKS LOST SIGNAL   rank LOST sends itself SIGNAL in the middle of endless all-reduces (0: it throws;
//                                    -1: it closes its connections and stays; -2: its host loses its network)
//   program compute RANKS LOST SIGNAL  the same, while the others compute for ever and wait for nobody
//   program linger RANKS LOST SIGNAL   as lose, but what the others leave behind never lets go of them
//   program leave RANKS CODE         ends with CODE, after MPI was started and before ranks have met
//   program desert RANKS LOST CODE   as exchange, but rank LOST ends with CODE before ranks have met
//   program meet RANKS LOST SIGNAL   the last rank never comes; rank LOST, if not the last, comes and takes SIGNAL
//   program stand RANKS LOST 0       as exchange, again and again, until rank LOST computes for ever
// Variable WATCHDOG: seconds after which a job that stands ends, ranks that compute included.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/launch.h"
#include "comm/lost_rank.h"
#include "comm/trial.h"
#include "ops/backend.h"

namespace teratron::testing {
namespace {

void expect(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

void check_host_exchanges(Communicator& world) {
  std::vector<double> values = {1.0, -1.0 * world.rank()};
  world.all_reduce_host(values);
  expect(values[0] == world.size() && values[1] == -world.size() * (world.size() - 1) / 2.0, "host sums");
  const auto texts = world.all_gather_host(std::string(static_cast<std::size_t>(world.rank() * 1000), 'x'));
  const auto values_of_ranks = world.all_gather_host(std::array{0.5 * world.rank(), -2.0});
  for (int rank = 0; rank < world.size(); ++rank) {
    expect(values_of_ranks[static_cast<std::size_t>(rank)] == std::array{0.5 * rank, -2.0}, "host values");
    expect(texts[static_cast<std::size_t>(rank)].size() == static_cast<std::size_t>(rank * 1000), "host texts");
  }
}

// Sums, texts and values, in the world and in groups of it.
void exchange(Communicator& world) {
  check_host_exchanges(world);
  for (int colors = 2; colors <= world.size(); ++colors) {
    const auto group = world.split(world.rank() % colors, -world.rank());
    check_host_exchanges(*group);
  }
}

// Memory of a GPU in a program that is built for them, of the ranks of this machine in turn.
std::unique_ptr<Backend> make_memory([[maybe_unused]] int rank) {
#ifdef TERATRON_GPU_RANKS
  return make_cuda_backend({.device = rank % std::max(1, cuda_devices()), .channels = true});
#else
  return make_cpu_backend({.guard_memory = true});
#endif
}

void check(Communicator& world) {
  check_host_exchanges(world);
  const auto memory = make_memory(world.rank());
  world.attach(memory.get());
  std::vector<int> everyone;
  for (int rank = 0; rank < world.size(); ++rank) everyone.push_back(rank);
  run_all_trials(
      world, everyone, *memory,
      {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kI64, DType::kI32, DType::kU16, DType::kU8},
      {0, 1, 61, 1031, 40009});
  run_all_trials(world, everyone, *memory, {DType::kF32}, {(1 << 20) + 7});  // several segments
  for (int colors = 2; colors <= world.size(); ++colors) {
    const auto group = world.split(world.rank() % colors, -world.rank());
    group->attach(memory.get());
    run_all_trials(*group, group->all_gather_host(world.rank()), *memory, {DType::kF32}, {0, 1, 257});
  }
  for (std::uint32_t seed = 0; seed < 4; ++seed) run_random_program(world, *memory, seed, 50);
  if (world.size() > 1) run_random_messages(world, *memory, 4, 50);
}

// Messages form no circle here, which would block channels that all ranks of a group share.
void channels(Communicator& world) {
  const auto memory = make_memory(world.rank());
  world.attach(memory.get());
  std::vector<int> everyone;
  for (int rank = 0; rank < world.size(); ++rank) everyone.push_back(rank);
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter, Collective::kBroadcast}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const std::int64_t elements : {1, 61, 1031, 40009, (1 << 20) + 7}) {
        run_trial(world, everyone, *memory, {.collective = collective, .dtype = dtype, .elements = elements});
      }
    }
  }
  run_random_messages(world, *memory, 4, 50);
}

constexpr int kSever = -1, kCut = -2;  // no signals

void close_connections() {
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    int kind = 0;
    socklen_t length = sizeof(kind);
    if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &length) != 0 || kind != SOCK_STREAM) continue;
    ::shutdown(descriptor, SHUT_RDWR);
  }
  std::this_thread::sleep_for(std::chrono::seconds(60));
}

void take_signal(int signal) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));  // a beat has reported the activity
  if (signal == 0) throw UserError("this rank was told to fail");
  if (signal == kSever) return close_connections();
  // It comes back when all others have ended: mpirun ends its own part there through it.
  if (signal == kCut) {
    expect(std::system("ip link set eth0 down && setsid sh -c 'sleep 15; ip link set eth0 up' >/dev/null 2>&1 &") == 0,
           "the host's network goes down");
  }
  if (signal == kCut) return std::this_thread::sleep_for(std::chrono::seconds(60));
  std::raise(signal);
}

// Whose end never comes, as that of a device that waits for the lost rank.
class Lingerer {
 public:
  explicit Lingerer(bool lingers) : lingers_(lingers) {}
  ~Lingerer() {
    while (lingers_) std::this_thread::sleep_for(std::chrono::seconds(1));
  }

 private:
  const bool lingers_;
};

void compute(Communicator& world, int lost, int signal) {
  world.barrier();
  if (world.rank() == lost) take_signal(signal);
  for (std::atomic<int> steps = 0;; ++steps) {
  }
}

// Ranks by address have no GPUs here, and so no tensors to reduce.
void lose(Communicator& world, bool has_tensors, int lost, int signal) {
  const auto memory = make_cpu_backend();
  const Tensor view(*memory, DType::kF32, {100000});
  memory->fill_zero(view);
  for (int iteration = 0;; ++iteration) {
    note_activity({.name = "the test", .iteration = iteration / 100 * 100});
    if (world.rank() == lost && iteration == 100) take_signal(signal);
    if (iteration == 1) fmt::print(stderr, "rank {} has met the others\n", world.rank());
    has_tensors ? world.all_reduce(view) : world.barrier();
  }
}

void stand(Communicator& world, int lost) {
  for (int iteration = 0;; ++iteration) {
    note_activity({.name = "the test", .iteration = iteration});
    check_host_exchanges(world);
    if (world.rank() == 0 && iteration == 1) fmt::print(stderr, "the ranks have met\n");
    for (std::atomic<int> steps = 0; world.rank() == lost && iteration == 100; ++steps) {
    }
  }
}

void run_rank(Communicator& world, const LaunchEnvironment& environment, const std::vector<std::string>& words) {
  const std::string& command = words.at(0);
  if (command == "check") return check(world);
  if (command == "exchange" || command == "desert" || command == "meet") return exchange(world);
  if (command == "channels") return channels(world);
  const int lost = std::stoi(words.at(2)), signal = std::stoi(words.at(3));
  if (command == "stand") return stand(world, lost);
  const Lingerer lingerer(command == "linger");
  command == "compute" ? compute(world, lost, signal) : lose(world, !environment.address, lost, signal);
}

WatchSettings watch_settings() {
  WatchSettings watch;
  const char* const seconds = std::getenv("WATCHDOG");
  if (seconds != nullptr) watch = {.longest = std::chrono::seconds(std::stoi(seconds)), .watches_work = true};
  return watch;
}

// The rank, before anything is started.
int own_rank() {
  const char* const mpi = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* const address = std::getenv("RANK");
  return mpi != nullptr ? std::stoi(mpi) : address != nullptr ? std::stoi(address) : 0;
}

int run(const std::vector<std::string>& words) {
  try {
    const int ranks = std::stoi(words.at(1));
    if (words.at(0) == "meet" && own_rank() == ranks - 1) {
      while (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) ::pause();  // until mpirun ends it, with the others
      return 0;
    }
#ifdef TERATRON_GPU_RANKS
    const LaunchEnvironment environment = detect_launch(TensorMemory::kDevice, "", watch_settings());
#else
    const bool has_tensors = words.at(0) == "check";
    const LaunchEnvironment environment =
        detect_launch(has_tensors ? TensorMemory::kHost : TensorMemory::kDevice, "", watch_settings());
#endif
    if (words.at(0) == "leave") return std::stoi(words.at(2));
    if (words.at(0) == "desert" && environment.process == std::stoi(words.at(2))) return std::stoi(words.at(3));
    if (words.at(0) == "meet" && environment.process == std::stoi(words.at(2))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      std::raise(std::stoi(words.at(3)));
    }
    run_ranks(environment, ranks, [&](Communicator& world) { run_rank(world, environment, words); });
    if (environment.process == 0) fmt::print("{} ranks of {} are exact\n", ranks, environment.launcher);
    return 0;
  } catch (const LostRank& lost) {
    fmt::print(stderr, "{}\n", lost.what());
    return 3;
  } catch (const UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const EnvironmentError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "wrong: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace teratron::testing

int main(int argc, char** argv) {
  const int code = teratron::testing::run({argv + 1, argv + argc});
  teratron::leave_launch(code);
  return code;
}
