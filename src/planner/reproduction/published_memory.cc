#include "reproduction/published_memory.h"

#include <algorithm>

#include "pipeline/memory.h"
#include "plan/costs/rank_parameters.h"
#include "train/plans/pipeline_plan.h"

namespace teratron::plan {
namespace {

// Bytes of a token in a layer that the forward of torchtitan's Llamas keeps for the backward.
double kept_bytes(const PublishedRun& run) {
  const ModelConfig& m = run.model;
  const auto h = static_cast<double>(m.hidden_size), wide = static_cast<double>(m.ffn_hidden_size()),
             keys = static_cast<double>(m.key_value_heads() * m.head_size());
  const double input = 2 * h, whole = 2 * (8 * h + 2 * keys + 3 * wide);
  if (run.recomputes("block")) return input;
  if (run.recomputes("layers")) return (input + whole) / 2;
  if (!run.recomputes("ops")) return whole;
  // Attention's output and every second product's: queries, values, the gate, and the last one's, which nothing needs:
  // compiled code does not keep it.
  const double last = run.is_compiled ? 0 : h;
  return input + 2 * (2 * h + keys + wide + last);
}

// Bytes that the loss takes of the stream's pool for each logit. It is made of logits in 16 bits and in fp32 and of the
// logarithms of their shares, 2, 4 and 4 bytes. The backward makes two gradients in fp32: one fits where the logits
// were, the other one is taken anew. Logits that ranks share out by words are also shifted by the largest before, and
// their gradient passes through three tensors (torch.distributed.tensor.parallel.loss_parallel). Compiled, only logits
// and their gradients are in memory, in 16 bits.
double loss_bytes(const PublishedRun& run) {
  if (run.loss_is_compiled) return 4;
  return run.tensor > 1 ? 18 : 14;
}

// Bytes of a token in the final norm and before the output projection: the last layer's output, fp32 of it, the norm's
// output before and after its weight. Tensor-parallel ranks also gather their rows and keep them, with a copy in their
// order.
double end_bytes(const PublishedRun& run) {
  const auto h = static_cast<double>(run.model.hidden_size), t = static_cast<double>(run.tensor);
  return 10 * h + (run.tensor > 1 ? 2 * 2 * h * t : 0);
}

double fsdp_activation_bytes(const PublishedRun& run) {
  const double rows = static_cast<double>(run.micro_batch * run.tokens) / static_cast<double>(run.tensor * run.context);
  return rows * (static_cast<double>(run.model.num_layers) * kept_bytes(run) +
                 loss_bytes(run) * static_cast<double>(run.model.vocab_size) + end_bytes(run));
}

}  // namespace

double state_bytes_of(const PublishedRun& run) {
  const RankParameters held = rank_parameters(run.model, run.tensor);
  const double layers = static_cast<double>(run.model.num_layers) / static_cast<double>(run.stages);
  const double ends = run.stages == 1 ? held.embedding + held.head + held.tied : 0;
  const bool is_fsdp = run.sharding == DataSharding::kWeights;
  // Megatron-LM: weights of 16 bits, gradients and weights of 32 bits, two moments.
  if (!is_fsdp) return 18 * (layers * held.layer + ends);
  // FSDP: all in 32 bits, shared out. The ends and the last layer are not given back between forward and backward, in
  // the buffer of the stream that gathers, and once more where the passes read them.
  const double gathered = 2 * 2 * (ends + held.layer);
  return 16 * (layers * held.layer + ends) / static_cast<double>(run.copies()) + gathered;
}

double activation_bytes_of(const PublishedRun& run) {
  if (run.sharding == DataSharding::kWeights) return fsdp_activation_bytes(run);
  // Korthikanti et al. (arXiv 2205.05198), section 4: of a layer's token and column 34 bytes, 24 of them split by
  // tensor parallelism and 10 by sequence parallelism; of a head's scores 5 bytes each.
  const auto s = static_cast<double>(run.tokens), b = static_cast<double>(run.micro_batch),
             h = static_cast<double>(run.model.hidden_size), t = static_cast<double>(run.tensor),
             heads = static_cast<double>(run.model.num_attention_heads);
  const auto layers = static_cast<double>(run.model.num_layers), p = static_cast<double>(run.stages),
             m = static_cast<double>(run.cells);
  const double scores = run.recomputes("scores") ? 0 : 5 * heads * s / (h * t);
  const double of_layer = s * b * h * (10 / (run.sequence_parallel ? t : 1) + 24 / t + scores);
  // The first stage holds p micro-batches, and with interleaving 1 + (p - 1) / (p m) times as many.
  const double held = m > 1 ? 1 + (p - 1) / (p * m) : 1;
  return of_layer * layers * held;
}

double bytes_by_megatron(const TrainConfig& config) {
  constexpr double kOfParameter = 18, kOfActivation = 34, kOfAngle = 8, kOfCache = 4, kOfLogit = 10;
  const ModelConfig& model = config.model.config;
  const PipelinePlan plan = plan_pipeline(config);
  const auto tensor = static_cast<double>(config.layout.tensor_parallel);
  const std::vector<std::int64_t> whole = {config.model.seq_length};
  const std::vector<std::int64_t>& slices = plan.slices_of(0).empty() ? whole : plan.slices_of(0);
  const RankParameters parameters = rank_parameters(model, config.layout.tensor_parallel);
  const auto stages = static_cast<std::size_t>(config.layout.pipeline_parallel);
  const double layers = static_cast<double>(model.num_layers) / static_cast<double>(stages);
  const std::int64_t sequences = config.batch.micro_batch_size;
  const double tokens = static_cast<double>(sequences * config.model.seq_length) * layers;  // of all layers of a stage
  const double columns = static_cast<double>(model.hidden_size) / tensor;
  const double activations = kOfActivation * columns + kOfAngle * static_cast<double>(model.head_size());
  const std::vector<pipeline::MemoryPeak> peaks = pipeline::memory_peaks(plan.schedule, slices);
  double most = 0;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    double held = layers * parameters.layer, logits = 0;
    if (stage == 0) held += parameters.embedding + parameters.tied;
    if (stage + 1 == stages) {
      held += parameters.head + (stage == 0 ? 0 : parameters.tied);
      logits = kOfLogit * static_cast<double>(sequences * slices.front() * model.vocab_size) / tensor;
    }
    const double live = peaks[stage].micro_batches, caches = slices.size() > 1 ? kOfCache * columns * (live + 1) : 0;
    most = std::max(most, kOfParameter * held + tokens * (activations * live + caches) + logits);
  }
  return most;
}

}  // namespace teratron::plan
