#include "plan/reproduction/published_gpt.h"

namespace teratron::plan {

TrainConfig config_of(const PublishedGpt& gpt, std::int64_t sequences, std::int64_t micro_batches) {
  TrainConfig config;
  ModelConfig& model = config.model.config;
  model.num_layers = gpt.layers;
  model.hidden_size = gpt.hidden;
  model.num_attention_heads = gpt.heads;
  model.vocab_size = gpt.vocabulary;
  model.max_position_embeddings = gpt.tokens;
  config.model.seq_length = gpt.tokens;
  config.batch.micro_batch_size = sequences;
  config.batch.global_batch_size = sequences * micro_batches;
  config.layout.tensor_parallel = gpt.tensor;
  config.layout.pipeline_parallel = gpt.stages;
  config.backend.bf16 = true;
  config.pipeline.schedule = pipeline::ScheduleKind::k1F1B;
  return config;
}

}  // namespace teratron::plan
