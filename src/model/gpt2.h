// GPT-2: embedding, pre-LN layers, final layer norm, tied output projection. Gpt2 is the parameters; Gpt2Runner is one
// rank's instance of it: all memory planned and allocated before the first call, then forward and backward passes.
// Every rank of a tensor-parallel group makes the same calls with the same tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/mesh.h"
#include "model/config.h"
#include "model/parameter_buckets.h"
#include "model/transformer_layer.h"
#include "nn/embedding.h"
#include "nn/language_model_head.h"
#include "tensor/memory.h"

namespace teratron {

struct Gpt2 {
  ModelConfig config;
  Embedding embedding;
  std::vector<TransformerLayer> layers;
  LayerNorm final_norm;
  LanguageModelHead head;

  explicit Gpt2(const ModelConfig& model_config, TensorPlace place = {});
  void visit(const ParameterVisitor& visitor);  // every parameter, in a fixed order
};

enum class Purpose { kTraining, kEvaluation, kGeneration };

struct RunnerOptions {
  Purpose purpose = Purpose::kTraining;
  std::int64_t batch = 1;   // most sequences in one call
  std::int64_t tokens = 0;  // most tokens of one sequence in one call
  // Gradients that no second micro-batch adds to may take the place of activations already used up.
  bool single_micro_batch = true;
  std::int64_t logits_chunk = 256;  // rows of logits that exist at a time
  // Training only.
  Recompute recompute = Recompute::kNone;
  bool sequence_parallel = false;  // batch * tokens of every call is a multiple of the tensor-parallel ranks
  bool shard_optimizer = false;    // the optimizer's state is shared out over the data-parallel ranks
};

// Where a micro-batch stands in the run; decides dropout masks, so that they don't depend on how the batch is cut.
struct MicroBatch {
  std::span<const std::int32_t> ids, targets;  // [batch, tokens]
  std::span<const float> weights;              // [batch, tokens]: loss mask over the tokens of the global batch
  std::int64_t batch = 0, tokens = 0;
  std::int64_t first_sample = 0;
  std::uint64_t seed = 0;
  std::uint32_t iteration = 0;
  double loss_scale = 1;    // times the gradients, not the loss that is returned
  bool accumulate = false;  // not the first micro-batch of the step
  bool last = true;         // of the step: gradients are summed over the data-parallel ranks
};

class Gpt2Runner {
 public:
  // Plans the memory; allocates nothing. UserError lists the faults of the configuration. `mesh` holds the groups this
  // rank belongs to; nullptr: it is alone.
  Gpt2Runner(Backend& backend, const ModelConfig& config, const RunnerOptions& options,
             std::shared_ptr<Mesh> mesh = nullptr);

  void allocate();                      // takes the planned memory
  void initialize(std::uint64_t seed);  // weights from the paper's distribution, moments zero

  // Gradients of loss_scale * sum(weights * loss), added up over micro-batches and, with the last one, over the
  // data-parallel ranks; returns this micro-batch's sum of weights * loss.
  double forward_backward(const MicroBatch& micro_batch);

  // After an update: where the optimizer's state is shared out, every rank receives what the others have updated.
  void gather_weights() { buckets_.gather_weights(*mesh_->data); }

  // Where a forward pass of the micro-batch, dropout included, first gives a value that is not finite; empty: nowhere.
  std::string first_not_finite(const MicroBatch& micro_batch);

  // Evaluation: the loss (nats) of every target from position `first_scored` of each sequence on, [batch, tokens -
  // first_scored] in `losses`. Weights are not used.
  void losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses);

  // Generation and evaluation of one sequence: logits of the last `rows` of `ids`, which stand at first_position and
  // after; keys and values of earlier positions come from earlier calls (purpose kGeneration). [rows, vocab_size]
  void logits(std::span<const std::int32_t> ids, std::int64_t first_position, std::int64_t rows,
              std::span<float> logits);

  Gpt2& model() { return model_; }
  const ModelConfig& config() const { return model_.config; }
  Backend& backend() { return backend_; }
  Mesh& mesh() const { return *mesh_; }
  const RunnerOptions& options() const { return options_; }
  const Arena& memory() const { return arena_; }
  std::vector<Parameter*> parameters();

 private:
  struct LayerBlocks {
    Arena::Block x, mean1, rstd1, qkv, context, log_sum_exp, x1, mean2, rstd2, pre_activation;
  };
  // Where a layer's activations are during its forward and its backward pass: the same place, unless made again.
  struct LayerPlan {
    LayerBlocks forward, backward;
  };
  struct Blocks {
    Arena::Block ids, targets, weights, loss;
    Arena::Block normed, branch, dnormed, wide, dx;
    Arena::Block logits, gathered_logits, max, own_max, sum_and_target;
    Arena::Block final_x, final_mean, final_rstd;
    std::vector<LayerPlan> layers;
  };
  struct Moments;  // when things happen in a step, for the planner

  void plan_parameters(const Moments& when);
  void plan_activations(const Moments& when);
  void plan_head(const Moments& when);
  LayerPlan plan_layer(const Moments& when, int layer);
  std::int64_t stream_rows() const;  // of the residual stream, at most
  TensorRef view(Arena::Block block, const Shape& shape) const;
  TransformerLayer::Saved saved(const Step& step, const LayerBlocks& blocks) const;
  LayerWorkspace workspace(const Step& step) const;
  LanguageModelHead::Workspace head_workspace(std::int64_t rows) const;
  Step step_of(const MicroBatch& micro_batch, bool training) const;
  // Calls after(place in the model, the residual stream there) behind the embedding and every layer.
  template <class After>
  TensorRef embed_and_run_layers(const Step& step, TensorRef ids, const After& after);
  TensorRef embed_and_run_layers(const Step& step, TensorRef ids);  // the last layer's output
  TensorRef final_normed(const Step& step, TensorRef x);            // full [batch, tokens, hidden]
  LayerNorm::Saved final_statistics(const Step& step) const;
  void backward(const Step& step, TensorRef x, TensorRef ids, bool last);
  double weighted_loss(TensorRef loss, std::span<const float> weights);
  void initialize_weights(const Parameter& parameter, TensorRef whole, const RandomStream& random);
  TensorRef all_logits(TensorRef part);  // [ranks, rows, columns of each] from this rank's [rows, columns]

  Backend& backend_;
  std::shared_ptr<Mesh> mesh_;
  RunnerOptions options_;
  Gpt2 model_;
  Arena arena_;
  Blocks blocks_{};
  ParameterBuckets buckets_;  // token table, position table, layer by layer, final norm
};

}  // namespace teratron
