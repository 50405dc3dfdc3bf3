#include "plan/costs/step_time.h"

#include <algorithm>
#include <array>

#include "optim/muon/matrices.h"
#include "plan/costs/rank_parameters.h"
#include "plan/search/layout.h"
#include "train/plans/pipeline_plan.h"

namespace teratron::plan {
namespace {

using pipeline::PassTimes;

// Every micro-batch of the rank that has most: its sequences, cut into slices.
std::vector<pipeline::MicroBatchCut> all_cuts(const TrainConfig& config, const PipelinePlan& plan) {
  std::int64_t left = config.largest_share();
  std::vector<pipeline::MicroBatchCut> cuts;
  for (int m = 0; m < plan.schedule.micro_batches; ++m) {
    const auto place = static_cast<std::size_t>(m);
    const std::int64_t size = plan.micro_batch_sizes[std::min(place, plan.micro_batch_sizes.size() - 1)];
    pipeline::MicroBatchCut cut{.sequences = std::min(left, size), .slice_tokens = plan.slices_of(m)};
    if (cut.slice_tokens.empty()) cut.slice_tokens = {config.model.seq_length};
    left -= cut.sequences;
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

LayerSettings settings_of(const TrainConfig& config, const ContextSplit& context = {}) {
  return {.tensor = config.layout.tensor_parallel,
          .groups = config.layout.mesh().ranks() / config.layout.tensor_parallel,
          .vocabulary_stages = config.vocabulary_ranks() / config.layout.tensor_parallel,
          .sequence_parallel = config.layout.sequence_parallel,
          .dtype = config.backend.compute_dtype(),
          .context = context};
}

// The work of a configuration, column by column.
class WorkBuilder {
 public:
  WorkBuilder(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size, const ContextSplit& context)
      : config_(config),
        cluster_(cluster),
        model_(config.model.model_for(vocab_size)),
        constants_(constants_of(cluster)),
        costs_(model_, settings_of(config, context), cluster),
        recompute_(config.layout.recomputation()),
        plan_(plan_pipeline(config)) {}

  simulation::PipelineWork build() {
    work_.schedule = plan_.schedule;
    work_.tensor = config_.layout.tensor_parallel;
    work_.data = config_.layout.data_parallel;
    work_.costs.passes.resize(plan_.cell_layers.size());
    add_parameters();
    add_passes();
    return std::move(work_);
  }

 private:
  void add_passes() {
    const std::vector<pipeline::MicroBatchCut> cuts = all_cuts(config_, plan_);
    const bool alike = std::ranges::all_of(cuts, [&](const auto& cut) { return cut == cuts.front(); });
    for (const pipeline::MicroBatchCut& cut : cuts) {
      if (!alike) work_.costs.first_columns.push_back(work_.message_bytes.size());
      Slice slice{.sequences = cut.sequences};
      for (std::size_t number = 0; number < cut.slice_tokens.size(); ++number) {
        slice.tokens = cut.slice_tokens[number];
        add_column(slice, static_cast<std::int64_t>(number));
        slice.context += slice.tokens;
      }
      if (alike) break;
    }
    work_.costs.transfers.assign(work_.message_bytes.size(), 0);
  }

  std::size_t stage_of(std::size_t cell) const {
    return static_cast<std::size_t>(plan_.schedule.stage_of(static_cast<int>(cell)));
  }

  // `number`: of the slice in its micro-batch.
  void add_column(const Slice& slice, std::int64_t number) {
    const std::array layer = {costs_.layer(slice, Recompute::kNone), costs_.layer(slice, Recompute::kSelective),
                              costs_.layer(slice, Recompute::kFull)};
    const std::size_t cells = plan_.cell_layers.size();
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const StageRecompute& recompute = recompute_.of(static_cast<int>(stage_of(cell)));
      const std::int64_t layers = plan_.cell_layers[cell], again = recompute.layers_of(layers, number);
      PassTimes times = layer[static_cast<std::size_t>(recompute.kind)].times(static_cast<double>(again));
      times = times.plus(layer.front().times(static_cast<double>(layers - again)));
      if (plan_.schedule.vocabulary_parallel) {
        times = times.plus(costs_.joint_ends(slice));
      } else {
        if (cell == 0) times = times.plus(costs_.embedding(slice));
        if (cell + 1 == cells) times = times.plus(costs_.head(slice));
      }
      slow_beside_gathers(cell, times);
      const double gather = costs_.gather_after_message(slice);
      if (cell > 0 && stage_of(cell - 1) != stage_of(cell)) times = times.plus({.forward = gather});
      if (cell + 1 < cells && stage_of(cell + 1) != stage_of(cell)) {
        times = times.plus({.backward = gather, .backward_input = gather});
      }
      work_.costs.passes[cell].push_back(slice.sequences == 0 ? PassTimes{} : times);
    }
    // Each tensor-parallel rank sends its part of the stream (executor/stream_messages.h).
    work_.message_bytes.push_back(static_cast<double>(slice.sequences * slice.tokens * model_.hidden_size) *
                                  static_cast<double>(size_of(config_.backend.compute_dtype())) /
                                  static_cast<double>(config_.layout.tensor_parallel));
  }

  // Seconds that gathers of weights and sums of gradients take from the passes that they run beside.
  void slow_beside_gathers(std::size_t cell, PassTimes& times) const {
    if (!work_.shards_gradients || constants_.sum_interference == 0) return;
    const CollectiveGroup group = copies(stage_of(cell));
    const double milliseconds = 1e3 * constants_.sum_interference,
                 gather = milliseconds * all_gather_seconds(cluster_, group, work_.weight_bytes[cell]),
                 sum = milliseconds * reduce_scatter_seconds(cluster_, group, work_.gradient_bytes[cell]),
                 again = work_.shards_weights ? gather : 0;
    times = times.plus({.forward = gather, .backward = again + sum, .backward_input = again, .backward_weight = sum});
  }

  void add_parameters() {
    const std::size_t cells = plan_.cell_layers.size();
    const auto stages = static_cast<std::size_t>(config_.layout.pipeline_parallel);
    work_.shards_optimizer = config_.layout.distributed_optimizer;
    work_.shards_gradients = config_.layout.shards_gradients();
    work_.shards_weights = work_.shards_gradients && config_.layout.data_sharding == DataSharding::kWeights;
    const auto held_of = [&](bool trained) {
      return rank_parameters(model_, config_.layout.tensor_parallel,
                             config_.vocabulary_ranks() / config_.layout.tensor_parallel, trained);
    };
    const RankParameters held = held_of(/*trained=*/true);
    // Before passes all weights are gathered, frozen ones too; after updates those that changed.
    const bool moves_frozen = work_.shards_weights && model_.adapters.active();
    const RankParameters moved = moves_frozen ? held_of(/*trained=*/false) : held;
    const double element = static_cast<double>(size_of(config_.backend.compute_dtype()));
    const bool ends_meet = stage_of(0) == stage_of(cells - 1);  // on one stage, which has one copy of a tied table
    const auto of_cell = [&](std::size_t cell, const RankParameters& each) {
      double parameters = static_cast<double>(plan_.cell_layers[cell]) * each.layer;
      if (cell == 0) parameters += each.embedding + each.tied;
      if (cell + 1 == cells) parameters += each.head + (ends_meet ? 0 : each.tied);
      if (cell < stages) parameters += each.shared;  // one cell of each stage
      return parameters;
    };
    std::vector<double> of_stage(stages);
    std::vector<std::int64_t> layers_of_stage(stages);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const double parameters = of_cell(cell, held);
      const std::size_t stage = stage_of(cell);
      of_stage[stage] += parameters;
      layers_of_stage[stage] += plan_.cell_layers[cell];
      const double gathered = of_cell(cell, moved) * element * constants_.gather_slowdown;
      work_.gradient_bytes.push_back(bytes_on_links(cluster_, copies(stage), parameters * constants_.gradient_bytes));
      work_.weight_bytes.push_back(bytes_on_links(cluster_, copies(stage), gathered));
    }
    work_.gradient_pieces = static_cast<int>(std::max<std::int64_t>(1, plan_.cell_layers.front()));
    work_.tied_bytes = ends_meet ? 0 : held.tied * constants_.gradient_bytes;
    const auto shares = static_cast<double>(config_.layout.distributed_optimizer ? config_.layout.data_parallel : 1);
    for (std::size_t stage = 0; stage < stages; ++stage) {
      // Sums slow the passes beside them.
      const double sums = all_reduce_seconds(cluster_, copies(stage), of_stage[stage] * constants_.gradient_bytes);
      work_.update_seconds.push_back(costs_.update_seconds(of_stage[stage] / shares) +
                                     (work_.shards_gradients ? 0 : constants_.sum_interference * sums) +
                                     constants_.step_start);
      if (config_.optimizer.kind == OptimizerKind::kMuon) {
        work_.update_seconds.back() += muon_seconds(layers_of_stage[stage], copies(stage));
      }
    }
  }

  // Muon's own of so many layers: products on the rank that has most of them, and the matrices' way there and back.
  double muon_seconds(std::int64_t layers, const CollectiveGroup& copies) const {
    TransformerLayer layer(model_.layer_config(), 0, {0, static_cast<int>(config_.layout.tensor_parallel)});
    const auto shards = config_.layout.distributed_optimizer ? static_cast<int>(config_.layout.data_parallel) : 1;
    std::vector<Parameter*> parameters;
    for (std::int64_t i = 0; i < layers; ++i) {
      layer.visit([&](Parameter& parameter) {
        parameter.sharding.ranks = shards;
        parameters.push_back(&parameter);
      });
    }
    double seconds = 0, bytes = 0;  // of this rank's shares of the matrices, which it sends there and gets back
    for (const MatrixRound& round : rounds_of(parameters)) {
      const LayerMatrix& largest = round.front();
      seconds +=
          costs_.orthogonalize_seconds(static_cast<double>(largest.rows()), static_cast<double>(largest.columns()));
      for (const LayerMatrix& matrix : round) {
        bytes += static_cast<double>(matrix.part_elements() * size_of(config_.backend.compute_dtype())) / shards;
      }
    }
    const LayerSettings settings = settings_of(config_);
    const CollectiveGroup tensor = slowest_tensor_group(cluster_, settings.tensor, settings.groups);
    const double way = reduce_scatter_seconds(cluster_, tensor, bytes) +
                       (shards > 1 ? reduce_scatter_seconds(cluster_, copies, bytes) : 0);
    return seconds + 2 * way;
  }

  CollectiveGroup copies(std::size_t stage) const {
    return {.first = static_cast<std::int64_t>(stage) * config_.layout.tensor_parallel,
            .size = config_.layout.data_parallel,
            .stride = config_.layout.tensor_parallel * config_.layout.pipeline_parallel};
  }

  const TrainConfig& config_;
  const Cluster& cluster_;
  const ModelConfig model_;
  const CostConstants constants_;
  const ModelCosts costs_;
  const Recomputation recompute_;
  const PipelinePlan plan_;
  simulation::PipelineWork work_;
};

// Operations of a sequence that backward passes make again, cut as the first micro-batch is.
double recomputed_operations(const TrainConfig& config, const ModelCosts& costs) {
  const Recomputation recompute = config.layout.recomputation();
  const Layout layout = layout_of(config);
  const std::vector<std::vector<std::int64_t>> stages = stage_cells(config, layout);
  Slice slice;
  double sum = 0;
  std::int64_t number = 0;
  const std::vector<AlikeCuts> cuts = cuts_of(config, layout);
  for (const std::int64_t tokens : cuts.front().cut.slice_tokens) {
    slice.tokens = tokens;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const StageRecompute& way = recompute.of(static_cast<int>(stage));
      for (const std::int64_t layers : stages[stage]) {
        sum += static_cast<double>(way.layers_of(layers, number)) * costs.recomputed_operations(slice, way.kind);
      }
    }
    slice.context += tokens;
    ++number;
  }
  return sum;
}

}  // namespace

double bytes_on_links(const Cluster& cluster, const CollectiveGroup& copies, double bytes) {
  if (copies.size <= 1) return bytes;
  const std::size_t level = cluster.level_between(copies.first, copies.first + (copies.size - 1) * copies.stride);
  return cluster.links[level].is_shared ? bytes / constants_of(cluster).sum_efficiency : bytes;
}

simulation::PipelineWork work_of(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size,
                                 const ContextSplit& context) {
  return WorkBuilder(config, cluster, vocab_size, context).build();
}

StepTime predict_step(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size,
                      const ContextSplit& context) {
  const simulation::PipelineResult run = simulation::simulate(work_of(config, cluster, vocab_size, context), cluster);
  StepTime time{.seconds = run.seconds, .pipeline_seconds = run.pipeline_seconds, .bubble_share = run.bubble_share()};
  time.tokens_per_second = static_cast<double>(config.largest_batch() * config.model.seq_length) / time.seconds;
  const bool is_wide = config.backend.compute_dtype() == DType::kF32;
  const double peak = is_wide ? cluster.device.peak_32 : cluster.device.peak_16;
  time.flops_utilization = config.model.model_for(vocab_size).training_flops_per_token(config.model.seq_length) *
                           time.tokens_per_second / (peak * static_cast<double>(config.layout.mesh().ranks()));
  const ModelConfig model = config.model.model_for(vocab_size);
  const ModelCosts costs(model, settings_of(config), cluster);
  const Slice sequence{.tokens = config.model.seq_length};
  const double again = config.layout.recomputation() == Recompute::kNone ? 0 : recomputed_operations(config, costs),
               once = static_cast<double>(model.num_layers) * costs.layer_operations(sequence) +
                      costs.head_operations(sequence);
  time.hardware_utilization = time.flops_utilization * (1 + again / once);
  return time;
}

}  // namespace teratron::plan
