// How fast ranks sum what they hold, beside a yardstick measured in turns with it. For ranks that are threads it is
// copying: every rank copies a view of the same size elsewhere, with the same threads and at the same time. An
// all-reduce of R ranks must read R views and write R views, and so does that, so neither can be faster where memory is
// the limit. Under mpirun it is the MPI_Allreduce of the same MPI. `bench/comm` runs it.
//   bench_all_reduce [--ranks N] [--largest MB] [--threads N]
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host/threads.h"
#include "comm/launch.h"
#include "comm/mpi/mpi_job.h"
#include "profile/collective_times.h"
#include "program.h"

namespace teratron {
namespace {

constexpr std::int64_t kMeasuredCopyGrain = 1 << 16;  // bytes

using Options = std::map<std::string, std::int64_t>;

Options read_options(std::span<char*> arguments) {
  Options options = {{"--ranks", 0}, {"--largest", 64}, {"--threads", 0}};  // ranks: 2 and 4 threads, or all processes
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    if (!options.contains(arguments[i])) throw_user_error("there is no option '{}'", arguments[i]);
    if (i + 1 == arguments.size() || std::atoll(arguments[i + 1]) < 1) {
      throw_user_error("{} needs a whole number above 0", arguments[i]);
    }
    options[arguments[i]] = std::atoll(arguments[i + 1]);
  }
  if (options["--ranks"] == 1) throw_user_error("--ranks is 1, and a rank alone reduces nothing; give 2 or more");
  return options;
}

// A row of the table, of a view of so many megabytes on each rank.
std::string measured_row(Communicator& world, bool against_mpi, std::int64_t megabytes) {
  const std::int64_t bytes = megabytes << 20, count = bytes / static_cast<std::int64_t>(sizeof(float));
  std::vector<float> values(static_cast<std::size_t>(count)), other(values.size());  // zeros stay zeros
  const auto copy = [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(reinterpret_cast<std::byte*>(other.data()) + begin,
                reinterpret_cast<const std::byte*>(values.data()) + begin, static_cast<std::size_t>(end - begin));
  };
  const std::vector<std::function<void()>> actions = {
      [&] { world.all_reduce(TensorRef(values.data(), DType::kF32, {count})); },
      [&] { against_mpi ? mpi_all_reduce(other.data(), count) : parallel_for(bytes, kMeasuredCopyGrain, copy); }};
  const std::vector<double> seconds = collective_times(world, actions);
  const double gigabytes = 1e-9 * static_cast<double>(bytes);
  return fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} |", world.size(), megabytes, gigabytes / seconds[0],
                     gigabytes / seconds[1], seconds[1] / seconds[0]);
}

int run(std::span<char*> arguments) {
  const Options options = read_options(arguments);
  const LaunchEnvironment environment = detect_launch(TensorMemory::kHost);
  if (options.at("--threads") > 0) set_thread_count(static_cast<int>(options.at("--threads")));
  std::vector<int> counts = {2, 4};
  if (environment.kind == RankKind::kProcesses) counts = {environment.processes};
  if (options.at("--ranks") > 0) counts = {static_cast<int>(options.at("--ranks"))};
  const auto say = [&](const std::string& line) {
    if (environment.process == 0) fmt::print("{}\n", line);
  };
  say(fmt::format(
      "GB/s: bytes of the view (f32, in place) over the seconds until the last rank is done; medians. Ranks "
      "are {}.\n\n| ranks | MB | all-reduce GB/s | {} GB/s | ratio |\n|---|---|---|---|---|",
      environment.ranks_are(), environment.has_mpi() ? "MPI_Allreduce" : "copy"));
  for (const int ranks : counts) {
    run_ranks(environment, ranks, [&](Communicator& world) {
      for (std::int64_t megabytes = 1; megabytes <= options.at("--largest"); megabytes *= 4) {
        const std::string row = measured_row(world, environment.has_mpi(), megabytes);
        if (world.rank() == 0) say(row);
      }
    });
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) {
  const int code = teratron::run_program(count, arguments, teratron::run);
  teratron::leave_launch(code);
  return code;
}
