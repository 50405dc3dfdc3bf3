#include "profile/profile_request.h"

#include "data/batch_sampler.h"

namespace teratron {
namespace {

// Of each stage, all its cells together.
std::vector<std::int64_t> stage_layers(const StepSettings& settings) {
  std::vector<std::int64_t> stages(static_cast<std::size_t>(settings.layout.pipeline_parallel));
  const std::vector<std::int64_t> cells = cell_layers(settings);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) stages[cell % stages.size()] += cells[cell];
  return stages;
}

}  // namespace

ProfileRequest profile_request(const StepSettings& settings, std::int64_t vocab_size, const std::string& ranks) {
  const BatchSampler largest(settings.largest_batch(), settings.micro_batch_sizes(), 0, settings.layout.data_parallel,
                             settings.batch.samples_together);
  return {.model = settings.model.model_for(vocab_size),
          .sequences = largest.largest_micro_batch(),
          .tokens = settings.model.seq_length,
          .logits_chunk = settings.rows_of_logits(),
          .cell_layers = stage_layers(settings),
          .recompute = settings.layout.recompute,
          .sequence_parallel = settings.layout.sequence_parallel,
          .shard_optimizer = settings.layout.distributed_optimizer,
          .ranks = ranks};
}

}  // namespace teratron
