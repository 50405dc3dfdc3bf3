#include "train/plans/memory_plan.h"

#include "checkpoint/native/copied_checkpoint.h"
#include "executor/device_memory.h"
#include "executor/memory_choices.h"
#include "model/make_model.h"

namespace teratron {

ExecutorOptions training_options(const TrainConfig& config, const PipelinePlan& pipeline) {
  // Every rank plans for the largest share of the largest batch.
  const std::int64_t batch =
      pipeline.sampler(config.largest_batch(), {0, static_cast<int>(config.layout.data_parallel)})
          .largest_micro_batch();
  return {.purpose = Purpose::kTraining,
          .batch = batch,
          .tokens = config.model.seq_length,
          .logits_chunk = config.rows_of_logits(),
          .weight_tiles = config.backend.weight_tiles,
          .first_keys = config.documents.has_first_keys(),
          .position_ids = config.documents.has_position_ids(),
          .schedule = pipeline.schedule,
          .cuts = pipeline.cuts,
          .recompute = config.layout.recomputation(),
          .kept_layers = config.kept_layers(),
          .packed_weights = config.weight_packing(),
          .sequence_parallel = config.layout.sequence_parallel,
          .shard_optimizer = config.layout.distributed_optimizer,
          .tallies = config.output.trace_numerics,
          .preferences = config.documents.preferences(),
          .optimizer = config.optimizer.make_optimizer(),
          .cell_layers = pipeline.cell_layers};
}

std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context,
                                         std::span<const int> stages) {
  const StageMemoryPlans plans(config, context);
  const auto all = static_cast<int>(config.layout.pipeline_parallel);
  std::vector<std::int64_t> bytes;
  for (const int stage : stages) bytes.push_back(plans.bytes(stage));
  for (int stage = 0; stages.empty() && stage < all; ++stage) bytes.push_back(plans.bytes(stage));
  return bytes;
}

StageMemoryPlans::StageMemoryPlans(const TrainConfig& config, const MemoryPlanContext& context)
    : config_(config), context_(context), options_(training_options(config, plan_pipeline(config, context.profile))) {
  if (options_.logits_chunk == 0) options_.logits_chunk = kFewestRowsOfLogits;
  if (!options_.kept_layers) options_.kept_layers = 0;
  if (options_.packed_weights && options_.packed_weights->as_memory_allows) options_.packed_weights.reset();
}

RankMemory StageMemoryPlans::planned(int stage, const Recomputation& recompute, bool has_kinds) const {
  const MeshShape mesh = config_.layout.mesh();
  const RankCoordinates place = rank_coordinates(mesh, stage * mesh.tensor);
  const std::unique_ptr<Model> model = make_model(config_.model.model_for(context_.vocab_size), place.tensor,
                                                  config_.pipeline.vocabulary_stages(place.pipeline));
  ExecutorOptions options = options_;
  // Other stages' ways do not matter to this one's plan.
  options.recompute = Recomputation(std::vector{recompute.of(stage)});
  const StagePlan plan(*model, options, place, context_.compute_dtype);
  const Arena& arena = plan.memory().arena();
  RankMemory memory{.stage = stage, .arena = arena.bytes()};
  for (std::size_t kind = 0; has_kinds && kind < kMemoryKinds.size(); ++kind) {
    memory.of_kind[kind] = arena.bytes_of(kMemoryKinds[kind]);
  }
  if (context_.on_gpu) {
    const DeviceMemory device = device_memory_of(plan, context_.compute_dtype, context_.captures_graphs);
    memory.scratch = device.scratch;
    memory.graphs = device.graphs;
  }
  if (context_.threads > 0) {
    memory.threads = cpu_working_bytes(plan.work(), {.compute_dtype = context_.compute_dtype}, context_.threads);
  }
  if (config_.output.async_save && context_.threads > 0 && writes_checkpoints(place)) {
    std::vector<Parameter*> parameters;
    model->visit([&](Parameter& parameter) { parameters.push_back(&parameter); });
    memory.copy = bytes_of_copied_checkpoint(parameters, context_.compute_dtype);
  }
  return memory;
}

}  // namespace teratron
