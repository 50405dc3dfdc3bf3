#include "runtime/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/resources.h"
#include "base/host/standard_streams.h"
#include "base/host/threads.h"
#include "console/long_task.h"

namespace teratron {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Compares the options of all processes: under a launcher each reads its own command line and files.
void require_same_options(Communicator& world, const std::string& options) {
  const std::vector<std::string> all = world.all_gather_host(options);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    std::string differences;
    const std::vector<std::string> first = lines_of(all[0]), other = lines_of(all[rank]);
    for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
      if (first[i] != other[i]) differences += fmt::format("\n  {} | {}", first[i], other[i]);
    }
    throw_user_error("ranks 0 and {} were given different configurations; start all alike:{}", rank, differences);
  }
}

// Refuses too many ranks in one process: their memory of each other grows with the square of their number.
void require_few_threads(int ranks) {
  if (ranks <= RankLauncher::kMostThreads) return;
  throw_user_error(
      "{} ranks as threads of one process are too many, {} is the most; start them as processes (mpirun, srun), or "
      "choose a smaller layout",
      ranks, RankLauncher::kMostThreads);
}

}  // namespace

std::vector<std::int64_t> Rank::peak_memory(const Allocator& memory) const {
  const std::int64_t share = memory.is_host_memory()
                                 ? static_cast<std::int64_t>(peak_memory_bytes()) / ranks_in_this_process()
                                 : memory.peak_bytes();
  return world.all_gather_host(share);
}

std::string warning_of_split_hosts(const MeshShape& shape, std::span<const std::string> hosts) {
  for (int first = 0; first < shape.ranks(); first += shape.tensor) {
    for (int rank = first + 1; rank < first + shape.tensor; ++rank) {
      const std::string &one = hosts[static_cast<std::size_t>(first)], &other = hosts[static_cast<std::size_t>(rank)];
      if (one == other) continue;
      return fmt::format(
          "warning: the tensor-parallel ranks {} to {} lie on several hosts ({}, {}), whose network carries every "
          "layer's sums; choose a --tp that divides the ranks of a host, and start consecutive ranks on each",
          first, first + shape.tensor - 1, one, other);
    }
  }
  return "";
}

RankLauncher::RankLauncher(const LayoutSettings& layout, BackendKind backend, const WatchSettings& watch)
    : shape_(layout.mesh()),
      environment_(detect_launch(backend == BackendKind::kCuda ? TensorMemory::kDevice : TensorMemory::kHost,
                                 layout.bind, watch)) {
  if (layout.threads > 0) set_thread_count(static_cast<int>(layout.threads));
}

void RankLauncher::run(const std::string& options, const std::function<void(const Rank&)>& body) const {
  const bool are_threads = environment_.kind == RankKind::kThreads;
  std::optional<LongTask> progress;
  if (are_threads) {
    require_few_threads(shape_.ranks());
    if (shape_.ranks() > 1) progress.emplace(fmt::format("starting {} ranks as threads", shape_.ranks()));
  }
  run_ranks(environment_, shape_.ranks(), [&](Communicator& world) {
    if (!are_threads) {
      require_same_options(world, options);
      const std::string warning = warning_of_split_hosts(shape_, world.all_gather_host(environment_.host));
      if (world.rank() == 0 && !warning.empty()) report_to_user(warning);
    }
    const Rank rank{
        .world = world, .mesh = std::make_shared<Mesh>(make_mesh(world, shape_)), .environment = environment_};
    if (rank.is_first()) progress.reset();
    body(rank);
  });
}

void RankLauncher::require_file(std::string_view name, const std::filesystem::path& input) const {
  if (environment_.processes == 1 || !is_standard_stream(input)) return;
  throw_user_error("{} - cannot be read by {} processes, since {} gives its standard input to one of them; name a file",
                   name, environment_.processes, environment_.launcher);
}

std::optional<OutputLock> RankLauncher::lock(const std::filesystem::path& out) const {
  if (!is_first_process() || out.empty()) return std::nullopt;
  return OutputLock(out);
}

std::string RankLauncher::description() const {
  if (shape_.ranks() == 1) return "";
  const std::string kind =
      environment_.kind == RankKind::kThreads
          ? fmt::format("threads of one process on {}", environment_.host)
          : fmt::format("processes of {}, this one on {}", environment_.launcher, environment_.host);
  return fmt::format("{} ranks (tensor {} x pipeline {} x data {}) as {}", shape_.ranks(), shape_.tensor,
                     shape_.pipeline, shape_.data, kind);
}

}  // namespace teratron
