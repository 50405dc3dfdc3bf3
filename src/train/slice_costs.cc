#include "train/slice_costs.h"

#include "data/batch_sampler.h"
#include "train/pipeline_plan.h"

namespace teratron {

ProfileRequest profile_request(const TrainConfig& config, std::int64_t vocab_size, RankKind ranks) {
  const BatchSampler largest(config.largest_batch(), config.micro_batch_size, 0,
                             static_cast<int>(config.data_parallel));
  return {.model = config.model_for(vocab_size),
          .sequences = largest.largest_micro_batch(),
          .tokens = config.seq_length,
          .logits_chunk = config.logits_chunk,
          .cell_layers = cell_layers(config),
          .recompute = config.recompute,
          .sequence_parallel = config.sequence_parallel,
          .shard_optimizer = config.distributed_optimizer,
          .ranks = ranks == RankKind::kThreads ? "threads" : "processes"};
}

std::optional<plan::Profile> slice_costs(const TrainConfig& config, std::int64_t vocab_size, RankKind ranks,
                                         const std::shared_ptr<Mesh>& mesh, Backend& backend,
                                         const ProfileProgress& progress) {
  if (config.token_slices != "auto") return std::nullopt;
  return profile_for(profile_request(config, vocab_size, ranks), mesh, backend, config.profile, progress);
}

}  // namespace teratron
