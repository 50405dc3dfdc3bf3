#include "plan/search/layout_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "pipeline/memory.h"
#include "pipeline/timing/closed_form.h"
#include "pipeline/token_slices.h"
#include "plan/costs/cost_constants.h"
#include "plan/costs/rank_parameters.h"
#include "tensor/weight_tiles.h"

namespace teratron::plan {
namespace {

// Even slices of a sequence; 1: it runs whole; 0: the slices are of several lengths, or not known yet.
std::int64_t even_slice_count(const Layout& layout) {
  if (layout.slicing.is_open()) return 0;
  const pipeline::TokenSlices slices = layout.slicing.slices();
  return slices.lengths.empty() && slices.cuts.empty() ? slices.count : 0;
}

// Whether cells may have unequal numbers of layers.
bool has_given_layers(const TrainConfig& config, const Layout& layout) {
  return !config.pipeline.layout.empty() || !layout.layers.empty() || layout.deals_layers;
}

// By the schedule itself, of no more micro-batches than fill the pipeline.
std::int64_t peak_slices(pipeline::ScheduleKind kind, pipeline::ScheduleSize size) {
  size.micro_batches = std::min(size.micro_batches, 2 * size.stages);
  return pipeline::memory_peaks(pipeline::make_schedule(kind, size)).front().slices;
}

// Slices whose activations the first stage holds at once in one of its cells, added up over its cells; at least.
std::int64_t live_cells(const Layout& layout, const TrainConfig& config, std::int64_t slices) {
  const std::int64_t micro_batches = micro_batches_of(config, layout), cells = slices * layout.virtual_stages;
  if (layout.pipeline == 1) return cells;
  if (layout.virtual_stages > 1 && has_given_layers(config, layout)) return 1;
  // An interleaved schedule of other numbers of micro-batches is one of more with some left out.
  if (pipeline::traits_of(layout.schedule).fills_groups && micro_batches % layout.pipeline != 0) {
    return std::min(micro_batches, layout.pipeline) * cells;
  }
  const pipeline::ScheduleSize size{.stages = static_cast<int>(layout.pipeline),
                                    .micro_batches = static_cast<int>(micro_batches),
                                    .slices = static_cast<int>(slices),
                                    .virtual_stages = static_cast<int>(layout.virtual_stages)};
  const std::optional<pipeline::ClosedForm> form = pipeline::closed_form(layout.schedule, size, 1, 1);
  if (!form) return peak_slices(layout.schedule, size);
  return static_cast<std::int64_t>(std::floor(form->peak_micro_batches * static_cast<double>(cells) + 1e-9));
}

// Copies that share a weight and a gradient out.
struct Sharing {
  std::int64_t weights = 1, gradients = 1;
};
Sharing sharing_of(DataSharding sharding, std::int64_t copies) {
  return {.weights = sharding == DataSharding::kWeights ? copies : 1,
          .gradients = sharding >= DataSharding::kGradients ? copies : 1};
}

// Bytes of an element of a frozen weight, in tiles at least: rows are rounded up to them.
double frozen_element_bytes(const TrainConfig& config, const MemoryPlanContext& context) {
  if (!config.backend.weight_tiles) return static_cast<double>(size_of(context.compute_dtype));
  return static_cast<double>(size_of(*config.backend.weight_tiles)) / (kTileRows * kTileColumns);
}

// Bytes of a rank of the stage, without those that it leaves to other copies.
std::int64_t bytes_of_stage(const StageMemoryPlans& plans, const TrainConfig& config, const MemoryPlanContext& context,
                            int stage) {
  return plans.bytes(stage) - bytes_left_out(config, context, static_cast<std::size_t>(stage)).all();
}

}  // namespace

void ParameterBytes::add(const Parameter& parameter, const Optimizer& updates, DType compute_dtype,
                         std::optional<DType> tiles) {
  const std::int64_t elements = parameter.shape.elements();
  if (tiles && parameter.frozen && parameter.takes_tiles) {
    weight += elements * size_of(*tiles) / (kTileRows * kTileColumns);  // at least: rows are rounded up to tiles
  } else {
    weight += elements * size_of(compute_dtype);
  }
  if (parameter.frozen) return;
  gradient += elements * size_of(accumulation_dtype_of(compute_dtype));
  if (const std::optional<DType> master = master_dtype_of(compute_dtype)) optimizer += elements * size_of(*master);
  for (const OptimizerSlot& slot : updates.slots(parameter, compute_dtype)) optimizer += elements * size_of(slot.dtype);
}

LeftOut bytes_left_out(const TrainConfig& config, const MemoryPlanContext& context, std::size_t stage) {
  if (!config.layout.shards_gradients()) return {};
  const auto [weights, gradients] = sharing_of(config.layout.data_sharding, config.layout.data_parallel);
  const PipelinePlan plan = plan_pipeline(config);
  const std::size_t cells = plan.cell_layers.size();
  const auto has_cell = [&](std::size_t cell) {
    return static_cast<std::size_t>(plan.schedule.stage_of(static_cast<int>(cell))) == stage;
  };
  const auto of_stage = [&](const RankParameters& held) {
    double parameters = held.shared + (has_cell(0) || has_cell(cells - 1) ? held.tied : 0);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      if (!has_cell(cell)) continue;
      parameters += static_cast<double>(plan.cell_layers[cell]) * held.layer;
      if (cell == 0) parameters += held.embedding;
      if (cell + 1 == cells) parameters += held.head;
    }
    return parameters;
  };
  const ModelConfig model = config.model.model_for(context.vocab_size);
  const auto held = [&](bool trained) {
    return rank_parameters(model, config.layout.tensor_parallel,
                           config.vocabulary_ranks() / config.layout.tensor_parallel, trained);
  };
  const RankParameters all = held(/*trained=*/false);
  const double parameters = of_stage(all);
  // Frozen weights have no gradients.
  const double trained = model.adapters.active() ? of_stage(held(/*trained=*/true)) : parameters;
  const auto element = static_cast<double>(size_of(context.compute_dtype)),
             of_gradient = static_cast<double>(size_of(accumulation_dtype_of(context.compute_dtype))),
             of_frozen = frozen_element_bytes(config, context);
  const auto others = [](std::int64_t copies) { return 1 - 1 / static_cast<double>(copies); };
  const bool keeps_gradients = plan.schedule.micro_batches > 1;  // else they may lie where activations lay
  const double stored = trained * element + (parameters - trained) * of_frozen;
  const double whole = weights > 1 ? std::min(parameters * others(weights), 2 * all.layer) * element : 0;
  return {.weights = static_cast<std::int64_t>(std::max(0.0, stored * others(weights) - whole)),
          .gradients = static_cast<std::int64_t>(keeps_gradients ? trained * of_gradient * others(gradients) : 0)};
}

std::vector<std::int64_t> memory_of_stages(const TrainConfig& config, const MemoryPlanContext& context) {
  const StageMemoryPlans plans(config, context);
  std::vector<std::int64_t> bytes;
  for (int stage = 0; stage < config.layout.pipeline_parallel; ++stage) {
    bytes.push_back(bytes_of_stage(plans, config, context, stage));
  }
  return bytes;
}

RankMemory memory_of_stage(const TrainConfig& config, const MemoryPlanContext& context, int stage) {
  RankMemory memory = StageMemoryPlans(config, context).by_kind(stage);
  const LeftOut left_out = bytes_left_out(config, context, static_cast<std::size_t>(stage));
  memory.arena -= left_out.all();
  for (std::size_t kind = 0; kind < kMemoryKinds.size(); ++kind) {
    if (kMemoryKinds[kind] == MemoryKind::kWeights) memory.of_kind[kind] -= left_out.weights;
    if (kMemoryKinds[kind] == MemoryKind::kGradients) memory.of_kind[kind] -= left_out.gradients;
  }
  return memory;
}

MemoryPlanContext memory_context(const TrainConfig& config, std::int64_t vocab_size, const Cluster& cluster) {
  const int threads = cpu_threads(cluster);
  return {.vocab_size = vocab_size,
          .compute_dtype = config.backend.compute_dtype(),
          .threads = threads,
          .on_gpu = threads == 0};
}

LayoutMemory::LayoutMemory(const TrainConfig& config, const MemoryPlanContext& context)
    : config_(config),
      context_(context),
      model_(config.model.model_for(context.vocab_size)),
      optimizer_(config.optimizer.make_optimizer()) {}

void LayoutMemory::add(ParameterBytes& bytes, Parameter parameter) const {
  parameter.frozen = config_.model.config.adapters.active() && !parameter.adapter;
  bytes.add(parameter, *optimizer_, context_.compute_dtype, config_.backend.weight_tiles);
}

const LayoutMemory::Shard& LayoutMemory::shard_of(std::int64_t tensor) const {
  if (const auto known = shards_.find(tensor); known != shards_.end()) return known->second;
  Shard shard{.layer = {model_.layer_config(), 0, {0, static_cast<int>(tensor)}}, .of_layer = {}};
  shard.layer.visit([&](Parameter& parameter) { add(shard.of_layer, parameter); });
  return shards_.emplace(tensor, std::move(shard)).first->second;
}

const RankParameters& LayoutMemory::ends_of(const Layout& layout) const {
  const std::pair key{layout.tensor, layout.vocabulary_parallel ? layout.pipeline : 1};
  const auto known = ends_.find(key);
  return known != ends_.end() ? known->second
                              : ends_.emplace(key, rank_parameters(model_, key.first, key.second)).first->second;
}

LayoutMemory::SliceBytes LayoutMemory::slice_bytes(const Layout& layout, std::int64_t slices) const {
  const TransformerLayer& layer = shard_of(layout.tensor).layer;
  // At most; joint ones may all be alone.
  const Slicing::Open open = layout.slicing.open;
  const std::int64_t sequences = open == Slicing::Open::kJoint ? 1
                                 : open == Slicing::Open::kAlike
                                     ? std::min(layout.micro_batch, share_of_batch(config_, layout.data))
                                     : cuts_of(config_, layout).front().cut.sequences;
  const std::int64_t unit = layout.sequence_parallel ? layout.tensor : 1;
  CallSizes sizes{.batch = sequences,
                  .tokens = config_.model.seq_length / unit / slices * unit,  // the shortest of even slices
                  .tensor_ranks = static_cast<int>(layout.tensor),
                  .sequence_parallel = layout.sequence_parallel,
                  .compute = context_.compute_dtype,
                  .accumulation = accumulation_dtype_of(context_.compute_dtype)};
  const bool has_cache = slices > 1 || open == Slicing::Open::kAlike;
  Carver kept, again;
  layer.carve(sizes, {.recompute = layout.recompute.of(0).kind, .has_cache = has_cache}, kept, again);
  const std::int64_t bytes = size_of(context_.compute_dtype), hidden = layer.hidden_size();
  SliceBytes slice{.x = sizes.stream_rows() * hidden * bytes,
                   .kept = kept.bytes(),
                   .again = again.bytes(),
                   .wide = sizes.rows() * layer.wide_columns() * bytes,
                   .full = sizes.rows() * hidden * bytes,
                   .stream = sizes.stream_rows() * hidden * bytes};
  if (has_cache) slice.cache = sequences * config_.model.seq_length * layer.attention.projected_columns() * bytes;
  return slice;
}

std::int64_t LayoutMemory::state(const Layout& layout, const ParameterBytes& bytes) const {
  const std::int64_t sharing = layout.distributed_optimizer ? layout.data : 1;
  const auto [weights, gradients] = sharing_of(config_.layout.data_sharding, layout.data);
  // With one backward pass an update, gradients may lie where activations lay.
  const bool keeps_gradients = micro_batches_of(config_, layout) > 1;
  return bytes.weight / weights + (keeps_gradients ? bytes.gradient / gradients : 0) + bytes.optimizer / sharing;
}

std::int64_t LayoutMemory::least(const Layout& layout) const {
  const std::int64_t even = even_slice_count(layout), slices = std::max<std::int64_t>(even, 1);
  const std::vector<std::int64_t> cells = stage_cells(config_, layout).front();  // of the first stage
  std::int64_t layers = std::accumulate(cells.begin(), cells.end(), std::int64_t{0}), fewest = std::ranges::min(cells);
  if (layout.deals_layers) {
    layers = layout.virtual_stages;
    fewest = 1;
  }
  const ParameterBytes& of_layer = shard_of(layout.tensor).of_layer;
  ParameterBytes parameters{.weight = layers * of_layer.weight,
                            .gradient = layers * of_layer.gradient,
                            .optimizer = layers * of_layer.optimizer};
  const RankParameters& ends = ends_of(layout);
  const pipeline::CellMap map{static_cast<int>(layout.pipeline), pipeline::traits_of(layout.schedule).placement};
  const bool has_head = map.stage_of(static_cast<int>(layout.pipeline * layout.virtual_stages) - 1) == 0;
  const double head = has_head ? ends.head : 0;
  add(parameters, {.name = "embeddings",
                   .shape = {static_cast<std::int64_t>(ends.embedding + ends.tied + ends.shared + head)},
                   .takes_tiles = true});
  const SliceBytes slice = slice_bytes(layout, slices);
  // Slices of several lengths: one micro-batch is alive, whole.
  const std::int64_t alive = even == 0 ? layout.virtual_stages : live_cells(layout, config_, slices);
  std::int64_t bytes = state(layout, parameters);
  bytes += fewest * (alive * (slice.x + slice.kept) + (alive + slices - 1) / slices * slice.cache);
  if (even == 0) return bytes;  // how large the slices are that workspaces have room for is not known
  // normed and branch are there always; the others while the layer's backward runs.
  bytes += 3 * slice.full + slice.wide + slice.again + slice.stream;
  if (layout.pipeline > 1) bytes += slice.stream;  // what is sent
  return bytes;
}

std::vector<std::int64_t> LayoutMemory::planned(const Layout& layout) const {
  return memory_of_stages(with_layout(config_, layout), context_);
}

std::vector<int> LayoutMemory::stages_that_may_be_fullest(const Layout& layout) const {
  std::vector<int> stages(static_cast<std::size_t>(layout.pipeline));
  std::iota(stages.begin(), stages.end(), 0);
  if (stages.size() > 1) std::rotate(stages.begin() + 1, stages.end() - 1, stages.end());
  // With deferred weight gradients every stage may hold as much as the one that needs most.
  const bool is_folded = pipeline::traits_of(layout.schedule).placement == pipeline::Placement::kFolded;
  const bool is_uneven = has_given_layers(config_, layout);
  const bool differs = !layout.recompute.uniform();
  const bool any = is_folded || is_uneven || differs || layout.defer_weight_gradients || layout.vocabulary_parallel;
  if (!any && stages.size() > 2) stages.resize(2);
  return stages;
}

void LayoutMemory::plan_on(const Layout& layout, std::int64_t enough, std::size_t stages, FullestEnd& known) const {
  const std::vector<int> all = stages_that_may_be_fullest(layout);
  const TrainConfig config = with_layout(config_, layout);
  std::optional<StageMemoryPlans> plans;
  for (; known.stages < std::min(stages, all.size()) && known.bytes <= enough; ++known.stages) {
    if (!plans) plans.emplace(config, context_);
    known.bytes = std::max(known.bytes, bytes_of_stage(*plans, config, context_, all[known.stages]));
  }
  known.is_whole = known.stages == all.size();
}

std::int64_t LayoutMemory::fullest_end(const Layout& layout) const {
  FullestEnd known;
  plan_on(layout, std::numeric_limits<std::int64_t>::max(), static_cast<std::size_t>(layout.pipeline), known);
  return known.bytes;
}

}  // namespace teratron::plan
