// A paper's tables (paper.h) beside what the cost model says of their runs.
#include <algorithm>

#include "base/error.h"
#include "cluster/cluster_file.h"
#include "plan/costs/step_time.h"
#include "reproduction/paper.h"
#include "reproduction/published_memory.h"
#include "train/plans/memory_plan.h"

namespace teratron::plan {
namespace {

constexpr double kBytesOfGiB = 1024.0 * 1024 * 1024, kSecondsOfDay = 86400;

double devices_of(const TrainConfig& run) { return static_cast<double>(run.layout.mesh().ranks()); }

// Operations of an update: 96 B s L h^2 (1 + s / 6h + V / 16 L h). `context`: ranks that split each sequence.
double operations_of(const TrainConfig& run, std::int64_t context) {
  const ModelConfig& model = run.model.config;
  const auto l = static_cast<double>(model.num_layers), h = static_cast<double>(model.hidden_size),
             v = static_cast<double>(model.vocab_size);
  const auto s = static_cast<double>(context * run.model.seq_length),
             b = static_cast<double>(run.largest_batch() / context);
  return 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

// The paper's program or Teratron's, on the paper's cluster.
class Program {
 public:
  Program(const Paper& paper, bool is_teratron) : paper_(paper), is_teratron_(is_teratron) {}

  // The run of a cell, and the one beside which it is; none: the program cannot run it.
  std::optional<TrainConfig> run_of(const PaperCell& cell) const {
    return is_teratron_ ? cell.teratrons_run : cell.run;
  }
  const std::optional<TrainConfig>& base_of(const PaperCell& cell) const {
    return is_teratron_ ? cell.teratrons_base : cell.base;
  }

  Cluster cluster_of(const TrainConfig& run) const {
    Cluster cluster = find_cluster(paper_.cluster, run.layout.mesh().ranks());
    if (is_teratron_) return run_by_teratron(std::move(cluster));
    cluster.constants.insert(cluster.constants.end(), paper_.constants.begin(), paper_.constants.end());
    return cluster;
  }

  // Bytes of the fullest rank.
  double bytes_of(const TrainConfig& run) const {
    if (!is_teratron_) return bytes_by_megatron(run);
    return static_cast<double>(std::ranges::max(planned_memory(
        run, {.vocab_size = run.model.config.vocab_size, .compute_dtype = run.backend.compute_dtype()})));
  }
  bool fits(const TrainConfig& run) const { return bytes_of(run) <= cluster_of(run).device.memory; }

  // `unit`: the cell's own, or another one.
  std::optional<double> value_of(const PaperCell& cell, std::string_view unit) const {
    const std::optional<TrainConfig> run = run_of(cell);
    return run ? std::optional(value_of(cell, *run, unit)) : std::nullopt;
  }

 private:
  // Speed of a device.
  struct Speed {
    double rate = 0;   // operations a second
    double share = 0;  // of the peak, in per cent
  };

  StepTime step_of(const TrainConfig& run, std::int64_t context) const {
    return predict_step(run, cluster_of(run), run.model.config.vocab_size, {.ranks = context, .is_ring = false});
  }

  Speed speed_of(const TrainConfig& run, std::int64_t context) const {
    const StepTime time = step_of(run, context);
    const double peak = cluster_of(run).device.peak_16;
    if (paper_.counts_recompute) {
      const double rate = operations_of(run, context) / time.seconds / devices_of(run);
      return {.rate = rate, .share = 100 * rate / peak};
    }
    // Operations of whole sequences, not of the shares that the configuration has.
    const ModelConfig& model = run.model.config;
    const std::int64_t share = run.model.seq_length;
    const double utilization = time.flops_utilization * model.training_flops_per_token(context * share) /
                               model.training_flops_per_token(share);
    return {.rate = utilization * peak, .share = 100 * utilization};
  }

  double value_of(const PaperCell& cell, const TrainConfig& run, std::string_view unit) const {
    const auto updates = static_cast<double>(cell.updates);
    if (unit == "GiB") return bytes_of(run) / kBytesOfGiB;
    if (unit == "ZettaFLOP") return operations_of(run, cell.context) * updates / 1e21;
    if (unit == "TFLOP/s") return speed_of(run, cell.context).rate / 1e12;
    if (unit == "PFLOP/s") return speed_of(run, cell.context).rate * devices_of(run) / 1e15;
    if (unit == "%") {
      const Speed speed = speed_of(run, cell.context);
      const std::optional<TrainConfig>& base = base_of(cell);
      return base ? 100 * speed.rate / speed_of(*base, 1).rate : speed.share;
    }
    const StepTime time = step_of(run, cell.context);
    if (unit == "days") return time.seconds * updates / kSecondsOfDay;
    if (unit == "x") return step_of(base_of(cell).value(), 1).seconds / time.seconds;
    if (unit == "k tokens/s") return time.tokens_per_second / 1e3;
    check(unit == "sequences/s", "a unit of data/papers");
    return time.tokens_per_second / (static_cast<double>(cell.context * run.model.seq_length) * devices_of(run));
  }

  const Paper& paper_;
  const bool is_teratron_;
};

ReproducedCell ratio_to(const PaperCell& cell, const std::vector<ReproducedCell>& above) {
  const auto find = [&](std::string_view name) {
    const auto found = std::ranges::find_if(
        above, [&](const ReproducedCell& one) { return one.table == cell.cell.table && one.name == name; });
    check(found != above.end(), "a ratio's two cells stand above it");
    return *found;
  };
  ReproducedCell ratio = ratio_of(find(cell.cell.name), find(cell.beside));
  if (!cell.teratrons_run) ratio.teratron.reset();
  ratio.uncounted = cell.cell.uncounted;
  ratio.cause = cell.cell.cause;
  ratio.assumed = cell.cell.assumed;
  return ratio;
}

// Number of the runs that were out of memory and do not fit, of those that the program can run.
double out_of_memory(const Paper& paper, const Program& program) {
  return static_cast<double>(std::ranges::count_if(paper.cells, [&](const PaperCell& cell) {
    const std::optional<TrainConfig> run = program.run_of(cell);
    return cell.is_out_of_memory && run && !program.fits(*run);
  }));
}

Curve curve_of(const Paper& paper, const PaperCurve& published, const Program& papers, const Program& teratrons) {
  Curve curve = published.curve;
  for (const PaperCell& cell : paper.cells) {
    if (std::ranges::count(published.tables, cell.cell.table) == 0) continue;
    curve.points.push_back({.x = fmt::format("{}", cell.run.layout.mesh().ranks()),
                            .ours = papers.value_of(cell, curve.unit).value(),
                            .teratron = teratrons.value_of(cell, curve.unit)});
  }
  return curve;
}

}  // namespace

Reproduction reproduce_paper(std::string_view name) { return reproduce_paper(read_paper(name)); }

Reproduction reproduce_paper(const Paper& paper) {
  const Program papers(paper, /*is_teratron=*/false), teratrons(paper, /*is_teratron=*/true);
  Reproduction result{.title = paper.title};
  for (const PaperCell& published : paper.cells) {
    if (published.is_out_of_memory) continue;
    ReproducedCell cell = published.cell;
    if (!published.beside.empty()) {
      cell = ratio_to(published, result.cells);
    } else if (cell.unit == "runs") {
      cell.ours = out_of_memory(paper, papers);
      if (published.teratrons_run) cell.teratron = out_of_memory(paper, teratrons);
    } else {
      cell.ours = papers.value_of(published, cell.unit).value();
      cell.teratron = teratrons.value_of(published, cell.unit);
    }
    result.cells.push_back(std::move(cell));
  }
  for (const PaperCurve& curve : paper.curves) result.curves.push_back(curve_of(paper, curve, papers, teratrons));
  result.fitted = fitted_constants(papers.cluster_of(paper.cells.front().run));
  return result;
}

}  // namespace teratron::plan
