#include "runtime/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/threads.h"
#include "telemetry/peak_memory.h"

namespace teratron {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Under a launcher every process reads its own command line and files.
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

}  // namespace

Faults LayoutOptions::faults() const {
  constexpr std::int64_t kMostRanks = 1 << 16, kMostThreads = 4096;
  constexpr Flag kTensor{"tensor-model-parallel-size"}, kPipeline{"pipeline-model-parallel-size"},
      kData{"data-parallel-size"};
  Faults faults;
  faults.need_between(kTensor, tensor_parallel, 1, kMostRanks);
  faults.need_between(kPipeline, pipeline_parallel, 1, kMostLayers);
  faults.need_between(kData, data_parallel, 1, kMostRanks);
  const double ranks = static_cast<double>(tensor_parallel) * static_cast<double>(pipeline_parallel) *
                       static_cast<double>(data_parallel);
  faults.add_if(faults.empty() && ranks > static_cast<double>(kMostRanks),
                "{} {} x {} {} x {} {} is {:.0f} ranks; there can be {} at most", kTensor, tensor_parallel, kPipeline,
                pipeline_parallel, kData, data_parallel, ranks, kMostRanks);
  faults.need_between({"threads"}, threads, 0, kMostThreads);
  return faults;
}

void add_model_parallel_fields(FieldList& list, LayoutOptions& o) {
  list.add("tensor-model-parallel-size", &o.tensor_parallel, "T", "ranks that each layer is split over").alias = "tp";
  list.add("pipeline-model-parallel-size", &o.pipeline_parallel, "P", "stages that the layers are cut into").alias =
      "pp";
}

void add_data_parallel_field(FieldList& list, LayoutOptions& o, std::string help) {
  list.add("data-parallel-size", &o.data_parallel, "D", std::move(help)).alias = "dp";
}

void add_threads_field(FieldList& list, LayoutOptions& o) {
  list.add("threads", &o.threads, "N", "of all ranks of a process together; 0: one a core");
}

std::string Rank::peak_memory_json(const Allocator& memory) const {
  const std::int64_t share = memory.is_host_memory()
                                 ? static_cast<std::int64_t>(peak_memory_bytes()) / ranks_in_this_process()
                                 : memory.peak_bytes();
  return fmt::format("[{}]", fmt::join(world.all_gather_host(fmt::format("{}", share)), ", "));
}

RankLauncher::RankLauncher(std::int64_t threads) : environment_(detect_launch()) {
  if (threads > 0) set_thread_count(static_cast<int>(threads));
}

void RankLauncher::run(const MeshShape& shape, const std::string& options,
                       const std::function<void(const Rank&)>& body) const {
  run_ranks(environment_, shape.ranks(), [&](Communicator& world) {
    require_same_options(world, options);
    body({.world = world, .mesh = std::make_shared<Mesh>(make_mesh(world, shape)), .environment = environment_});
  });
}

std::string RankLauncher::description(const MeshShape& shape) const {
  if (shape.ranks() == 1) return "";
  const std::string kind =
      environment_.kind == RankKind::kThreads
          ? fmt::format("threads of one process on {}", environment_.host)
          : fmt::format("processes of {}, this one on {}", environment_.launcher, environment_.host);
  return fmt::format("{} ranks (tensor {} x pipeline {} x data {}) as {}", shape.ranks(), shape.tensor, shape.pipeline,
                     shape.data, kind);
}

}  // namespace teratron
