#include "train/plans/memory_plan.h"

#include <numeric>

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
          .recompute = config.layout.recompute,
          .kept_layers = config.kept_layers(),
          .sequence_parallel = config.layout.sequence_parallel,
          .shard_optimizer = config.layout.distributed_optimizer,
          .tallies = config.output.trace_numerics,
          .preferences = config.documents.preferences(),
          .optimizer = config.optimizer.make_optimizer(),
          .cell_layers = pipeline.cell_layers};
}

std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context) {
  std::vector<int> stages(static_cast<std::size_t>(config.layout.pipeline_parallel));
  std::iota(stages.begin(), stages.end(), 0);
  return planned_memory(config, context, stages);
}

std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context,
                                         std::span<const int> stages) {
  ExecutorOptions options = training_options(config, plan_pipeline(config, context.profile));
  if (options.logits_chunk == 0) options.logits_chunk = kFewestRowsOfLogits;
  if (!options.kept_layers) options.kept_layers = 0;
  const MeshShape mesh = config.layout.mesh();
  std::vector<std::int64_t> bytes;
  for (const int stage : stages) {
    const RankCoordinates place = rank_coordinates(mesh, stage * mesh.tensor);
    const std::unique_ptr<Model> model = make_model(config.model.model_for(context.vocab_size), place.tensor,
                                                    config.pipeline.vocabulary_stages(place.pipeline));
    const StagePlan plan(*model, options, place, context.compute_dtype);
    bytes.push_back(plan.memory().arena().bytes());
    if (context.on_gpu) bytes.back() += device_memory_of(plan, context.compute_dtype, context.captures_graphs).bytes();
    if (context.threads > 0)
      bytes.back() += cpu_working_bytes(plan.work(), {.compute_dtype = context.compute_dtype}, context.threads);
    if (config.output.async_save && context.threads > 0 && writes_checkpoints(place)) {
      std::vector<Parameter*> parameters;
      model->visit([&](Parameter& parameter) { parameters.push_back(&parameter); });
      bytes.back() += bytes_of_copied_checkpoint(parameters, context.compute_dtype);
    }
  }
  return bytes;
}

}  // namespace teratron
