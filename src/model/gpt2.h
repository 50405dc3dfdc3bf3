// GPT-2: embedding, pre-LN layers, final layer norm, tied output projection. Gpt2 is the parameters; Gpt2Runner is one
// rank's instance of it: all memory planned and allocated before the first call, then forward and backward passes.
// Every rank of a tensor-parallel group makes the same calls with the same tokens; so does every stage of a pipeline,
// of which each runs its own layers and exchanges activations and gradients with its neighbours.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/mesh.h"
#include "model/config.h"
#include "model/parameter_buckets.h"
#include "model/stage_memory.h"
#include "model/transformer_layer.h"
#include "nn/embedding.h"
#include "nn/language_model_head.h"
#include "pipeline/trace.h"

namespace teratron {

// All parameters of the whole model, of which a stage holds some.
struct Gpt2 {
  ModelConfig config;
  Embedding embedding;
  std::vector<TransformerLayer> layers;
  LayerNorm final_norm;
  LanguageModelHead head;

  explicit Gpt2(const ModelConfig& model_config, TensorPlace place = {});
  void visit(const ParameterVisitor& visitor);  // every parameter, in a fixed order
};

// Where a micro-batch stands in the run; decides dropout masks, so that they don't depend on how the batch is cut.
struct MicroBatch {
  std::span<const std::int32_t> ids, targets;  // [batch, tokens]
  std::span<const float> weights;              // [batch, tokens]: loss mask over the tokens of the global batch
  std::int64_t batch = 0, tokens = 0;
  std::int64_t first_sample = 0;
  std::uint64_t seed = 0;
  std::uint32_t iteration = 0;
  double loss_scale = 1;  // times the gradients, not the loss that is returned
};

class Gpt2Runner {
 public:
  // Plans the memory; allocates nothing. UserError lists the faults of the configuration. `mesh` holds the groups this
  // rank belongs to; nullptr: it is alone.
  Gpt2Runner(Backend& backend, const ModelConfig& config, const RunnerOptions& options,
             std::shared_ptr<Mesh> mesh = nullptr);

  void allocate();                      // takes the planned memory
  void initialize(std::uint64_t seed);  // weights from the paper's distribution, moments zero

  // A step: gradients of loss_scale * sum(weights * loss), added up over its micro-batches, of which there are no more
  // than the schedule's, and over the data-parallel ranks. Returns this model copy's sum of weights * loss.
  double forward_backward(std::span<const MicroBatch> micro_batches);
  double forward_backward(const MicroBatch& only) { return forward_backward({&only, 1}); }
  // The same without the sum over data-parallel ranks.
  double forward_backward_alone(const MicroBatch& only);

  // After an update: where the optimizer's state is shared out, every rank receives what the others have updated.
  void gather_weights() { buckets_.gather_weights(*mesh_->data); }

  // Where in this stage a forward pass of the micro-batch, dropout included, first gives a value that is not finite;
  // empty: nowhere.
  std::string first_not_finite(const MicroBatch& micro_batch);

  // Evaluation: the loss (nats) of every target from position `first_scored` of each sequence on, [batch, tokens -
  // first_scored] in `losses`, on every stage. Weights are not used.
  void losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses);

  // Generation and evaluation of one sequence: logits of the last `rows` of `ids`, which stand at first_position and
  // after, on every stage; keys and values of earlier positions come from earlier calls (purpose kGeneration). [rows,
  // vocab_size]
  void logits(std::span<const std::int32_t> ids, std::int64_t first_position, std::int64_t rows,
              std::span<float> logits);

  // From now on, what this stage does in a step is appended to `trace`; nullptr: it is not.
  void record(std::vector<pipeline::TraceSpan>* trace) { trace_ = trace; }

  Gpt2& model() { return model_; }
  const ModelConfig& config() const { return model_.config; }
  Backend& backend() { return backend_; }
  Mesh& mesh() const { return *mesh_; }
  const RunnerOptions& options() const { return options_; }
  const StagePart& part() const { return part_; }
  const Arena& memory() const { return memory_.arena(); }
  std::vector<Parameter*> parameters();      // those that this stage holds, in the order of Gpt2::visit
  std::vector<Parameter*> all_parameters();  // of every stage; without memory where another stage holds them

 private:
  class StepRun;
  // A stage's part of a forward pass: `step` and where it is kept.
  struct Call {
    Step step;
    SlicePlace place;
  };

  void plan_parameters();
  Call call_of(const MicroBatch& micro_batch, const SlicePlace& place, bool training) const;
  // The tokens of a call on the device: i32 [batch, tokens].
  TensorRef upload_slice(const Call& call, TensorRef to, const MicroBatch& micro_batch,
                         std::span<const std::int32_t> from) const;
  // The first layer's input from the tokens; `out` from that. They call after(place in the model, the residual stream
  // there) behind the embedding and every layer.
  template <class After>
  void run_embedding(const Call& call, TensorRef ids, const After& after);
  template <class After>
  void run_layers(const Call& call, TensorRef out, const After& after);
  // Receives the first layer's input, or makes it from the tokens.
  template <class After>
  void begin_forward(const Call& call, TensorRef ids, const After& after);
  TensorRef output(const Call& call) const;  // where run_layers() should put it
  // All slices of a micro-batch through all cells, without a backward pass; calls last_cell(call, final x) on the last
  // stage.
  template <class LastCell, class After>
  void run_forward(const MicroBatch& micro_batch, bool training, const LastCell& last_cell, const After& after);
  template <class LastCell, class After>
  void run_forward_slice(const Call& call, TensorRef ids, const LastCell& last_cell, const After& after);
  TensorRef final_normed(const Step& step, TensorRef x);  // full [batch, tokens, hidden]
  // What the last stage has found, on all of them.
  void share_from_last_stage(std::span<float> values) const;
  void read_last_logits(TensorRef x, std::span<float> logits);  // of rows [rows, hidden] before the final norm
  void read_logits(TensorRef normed, std::int64_t first_row, std::span<float> logits);
  double weighted_loss(TensorRef loss, std::span<const float> weights);
  void initialize_weights(const Parameter& parameter, TensorRef whole, const RandomStream& random);
  TensorRef all_logits(TensorRef part);  // [ranks, rows, columns of each] from this rank's [rows, columns]
  // Buckets of gradients lie in the order of the backward pass: each chunk's, from the last one's on, with the final
  // norm before the model's last layer; then, where the embedding is, positions; then, at both ends, tokens.
  std::size_t first_bucket(int chunk) const;
  std::size_t layer_bucket(int chunk, int layer) const;
  TransformerLayer& layer(int chunk, int index) {
    return model_.layers[static_cast<std::size_t>(part_.first_layer(chunk) + index)];
  }
  bool is_here(const Parameter& parameter) const;

  Backend& backend_;
  std::shared_ptr<Mesh> mesh_;
  RunnerOptions options_;
  Gpt2 model_;
  StagePart part_;
  StageMemory memory_;
  ParameterBuckets buckets_;
  std::unique_ptr<Backend::Record> next_token_;  // of generation: the layers, for one more token
  std::vector<pipeline::TraceSpan>* trace_ = nullptr;
};

}  // namespace teratron
