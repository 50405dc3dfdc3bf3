#include "train/slice_costs.h"

#include "data/batch_sampler.h"
#include "train/pipeline_plan.h"

namespace teratron {
namespace {

// Of each stage, all its cells together.
std::vector<std::int64_t> stage_layers(const TrainConfig& config) {
  std::vector<std::int64_t> stages(static_cast<std::size_t>(config.pipeline_parallel));
  const std::vector<std::int64_t> cells = cell_layers(config);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) stages[cell % stages.size()] += cells[cell];
  return stages;
}

}  // namespace

ProfileRequest profile_request(const TrainConfig& config, std::int64_t vocab_size, const std::string& ranks) {
  const BatchSampler largest(config.largest_batch(), config.micro_batch_size, 0, config.data_parallel);
  return {.model = config.model_for(vocab_size),
          .sequences = largest.largest_micro_batch(),
          .tokens = config.seq_length,
          .logits_chunk = config.logits_chunk,
          .cell_layers = stage_layers(config),
          .recompute = config.recompute,
          .sequence_parallel = config.sequence_parallel,
          .shard_optimizer = config.distributed_optimizer,
          .ranks = ranks};
}

std::optional<slicing::Profile> slice_costs(const TrainConfig& config, std::int64_t vocab_size,
                                            const std::string& ranks, const std::shared_ptr<Mesh>& mesh,
                                            Backend& backend, const ProfileProgress& progress) {
  if (config.token_slices != "auto" && config.profile.empty()) return std::nullopt;
  return profile_for(profile_request(config, vocab_size, ranks), mesh, backend, config.profile, progress);
}

}  // namespace teratron
