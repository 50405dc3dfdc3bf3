// Published runs (data/published) beside what the cost model says of them, and all of them in short.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"
#include "cluster/cluster_file.h"
#include "plan/costs/step_time.h"
#include "reproduction/judgement.h"
#include "reproduction/published_choices.h"
#include "reproduction/published_memory.h"
#include "reproduction/published_prediction.h"
#include "reproduction/reproduction.h"
#include "train/plans/memory_plan.h"

namespace teratron::plan {
namespace published {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// Seconds of the run by Teratron, which shares out the optimizer's state alone, multiplies in 16 bits, recomputes whole
// layers or scores, and has a sequence on one rank. None: the run does otherwise, or does not fit then.
std::optional<double> teratrons_seconds(const PublishedRun& run, const RunConstants& constants) {
  const bool has_kind =
      std::ranges::all_of(run.recompute, [](const std::string& part) { return part == "block" || part == "scores"; });
  if (run.is_fp8 || !has_kind || !run.offload.empty() || run.context > 1) return std::nullopt;
  TrainConfig config = config_of(run);
  config.layout.data_sharding = DataSharding::kOptimizer;
  config.layout.distributed_optimizer = true;
  const MemoryPlanContext context{.vocab_size = run.model.vocab_size, .compute_dtype = config.backend.compute_dtype()};
  const std::array<int, 1> first = {0};
  const double room = find_cluster(run.cluster, run.devices).device.memory;
  if (static_cast<double>(planned_memory(config, context, first).front()) > room) return std::nullopt;
  return predict_step(config, teratrons_cluster_of(run, constants), run.model.vocab_size).seconds;
}

ReproducedCell cell_of(const PublishedRun& run, std::string unit, double published, double ours) {
  ReproducedCell cell{.table = run.table,
                      .name = run.name,
                      .unit = std::move(unit),
                      .source = run.source,
                      .published = published,
                      .ours = ours,
                      .is_fitted = run.is_for_fitting(),
                      .assumed = run.assumed};
  for (const char* const mark : {": ", ", "}) {
    if (cell.name.starts_with(run.table + mark)) cell.name.erase(0, run.table.size() + 2);
  }
  return cell;
}

void add_speed(const PublishedRun& run, const RunConstants& constants, std::vector<ReproducedCell>& cells) {
  if (!run.tokens_per_second && !run.teraflops && !run.step_seconds) return;
  const double seconds = step_seconds_of(run, constants);
  const std::optional<double> teratron = teratrons_seconds(run, constants);
  const auto add = [&](const char* unit, double published, const auto& of_seconds) {
    cells.push_back(cell_of(run, unit, published, of_seconds(seconds)));
    if (teratron) cells.back().teratron = of_seconds(*teratron);
  };
  if (run.step_seconds) {
    add("s", *run.step_seconds, [](double s) { return s; });
  } else if (run.teraflops) {
    add("TFLOP/s", *run.teraflops, [&](double s) { return teraflops_of(run, s); });
  } else {
    add("tokens/s", *run.tokens_per_second, [&](double s) { return tokens_per_second_of(run, s); });
  }
}

// Counted in closed form: nothing is fitted to memory.
void add_memory(const PublishedRun& run, std::vector<ReproducedCell>& cells) {
  const auto add = [&](const char* what, double published, double bytes) {
    cells.push_back(cell_of(run, "GiB", published, bytes / kGiB));
    cells.back().name += what;
    cells.back().is_fitted = false;
  };
  if (run.state_gib) add(", state", *run.state_gib, state_bytes_of(run));
  if (run.activations_gib) add(", activations", *run.activations_gib, activation_bytes_of(run));
  if (run.memory_gib) add(", memory", *run.memory_gib, state_bytes_of(run) + activation_bytes_of(run));
}

std::vector<ReproducedCell> cells_of(const PublishedFile& file) {
  const RunConstants constants = run_constants();
  std::vector<ReproducedCell> cells;
  for (const PublishedRun& run : published_runs(file)) {
    add_speed(run, constants, cells);
    add_memory(run, cells);
  }
  const std::map<std::string, std::string> causes = published_causes();
  for (ReproducedCell& cell : cells) {
    if (is_met(cell)) continue;
    for (const std::string& name : {cell.name, fmt::format("{}, {}", cell.table, cell.name)}) {
      const auto cause = causes.find(fmt::format("{}: {}", file.name, name));
      if (cause != causes.end()) cell.cause = cause->second;
    }
  }
  return cells;
}

}  // namespace
}  // namespace published

Reproduction reproduce_published(std::string_view name) {
  for (const PublishedFile& file : published_files()) {
    if (file.name != name) continue;
    Reproduction reproduction{.title = title_of(file), .cells = published::cells_of(file)};
    reproduction.choices = choices_among(published_runs(file), run_constants());
    return reproduction;
  }
  throw InternalError(fmt::format("no file of data/published has the name {}", name));
}

Reproduction reproduce_all_published(std::string_view /*name*/) {
  Reproduction all{.title = "Published runs, by source and half", .is_summary = true};
  std::vector<PublishedRun> runs;
  for (const PublishedFile& file : published_files()) {
    for (ReproducedCell& cell : published::cells_of(file)) {
      cell.table = fmt::format("{}: {}", file.name, cell.table);
      all.cells.push_back(std::move(cell));
    }
    std::ranges::move(published_runs(file), std::back_inserter(runs));
  }
  all.choices = choices_among(runs, run_constants());
  for (const auto& [name, value] : run_constants()) all.fitted.push_back({name, value, "fitted to the fitting half"});
  return all;
}

}  // namespace teratron::plan
