// The passes of one stage over one slice of a micro-batch: forward, backward and weight gradients of a cell's layers,
// with the model's ends where the stage has them. The caller sends and receives between stages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/mesh.h"
#include "executor/micro_batch.h"
#include "executor/pass_graphs.h"
#include "executor/stage/stage_plan.h"

namespace teratron {

class StagePasses {
 public:
  // The embedding or a layer that has just run forward, with the memory that it used, which the next one may overwrite.
  struct Passed {
    std::int64_t layer = -1;  // -1: the embedding, which has an output alone
    TensorRef x;              // the residual stream after it
    const TransformerLayer* of = nullptr;
    const LayerPass* pass = nullptr;
    TransformerLayer::Saved saved = {};
    LayerWorkspace workspace = {};
  };
  using After = std::function<void(const Passed& passed)>;

  StagePasses(Backend& backend, Model& model, const StagePlan& plan, Mesh& mesh)
      : backend_(backend), model_(model), plan_(plan), mesh_(mesh), graphs_(backend) {}

  SliceCall call_of(const MicroBatch& micro_batch, const SliceKey& key, bool training) const;

  // Uploads key lengths, first keys, positions and dropout counters, those that the micro-batch has.
  void begin(SliceCall& call, const MicroBatch& micro_batch) const;
  // Uploads the first key that each token of the call sees: `first_keys` [batch, tokens] (empty: 0 each), and those of
  // the model's window.
  void see_from(LayerPass& pass, std::vector<std::int32_t> first_keys) const;

  // The first layer's input from the slice's ids. Where ends are joint passes, every stage calls these and head();
  // without this end, x and dx are null and not used.
  void embed(const SliceCall& call, const MicroBatch& micro_batch, const After& after = {});
  // Embeds ids [batch, tokens] alone, for a model that needs no other inputs.
  void embed(const SliceCall& call, std::span<const std::int32_t> ids);
  void embed_backward(const SliceCall& call, const MicroBatch& micro_batch, TensorRef dx);

  // The place of a cell's output that stays on this stage: the next cell's input, or what the head works on.
  TensorRef kept_output(const SliceCall& call) const;
  // `out` from the first layer's input.
  void forward_layers(const SliceCall& call, TensorRef out, const After& after = {});
  // dx, the gradient of the cell's output, becomes that of its input. done(layer) follows each layer.
  void backward_layers(const SliceCall& call, TensorRef dx, const std::function<void(std::int64_t layer)>& done);
  void weight_gradients(const SliceCall& call, const std::function<void(std::int64_t layer)>& done);

  // Adds the losses of the last layer's output to those since clear_losses(); where dx is not null, makes gradients
  // too.
  void head(const SliceCall& call, const MicroBatch& micro_batch, TensorRef x, TensorRef dx);
  // Losses of the slice's targets without their weights, into their places of the micro-batch's [batch, tokens].
  void target_losses(const SliceCall& call, const MicroBatch& micro_batch, TensorRef x, std::span<double> losses);
  void clear_losses();
  // Waits for the device. Zeros without a head. The scale is that of all micro-batches since clear_losses().
  LossSums losses(double loss_scale);
  // Calls use(end call) with the head's workspace.
  void with_head(const SliceCall& call, const std::function<void(const EndCall&)>& use) { with_head(call, {}, use); }

 private:
  EndCall end_call(const LayerPass& pass, const SliceInputs& inputs, const LayerWorkspace& layers) const {
    return {.pass = pass, .inputs = inputs, .layers = layers, .sizes = plan_.memory().end_sizes(pass)};
  }
  void with_head(const SliceCall& call, const SliceInputs& inputs, const std::function<void(const EndCall&)>& use);
  // Nothing: the ends are of their stages alone.
  std::optional<JointPass> joint_pass(const LayerPass& pass, int stage_of_end) const;
  EndCall embedding_call(const SliceCall& call, const LayerPass& pass, const SliceInputs& inputs,
                         const LayerWorkspace& layers) const;
  void embed_inputs(const SliceCall& call, const SliceInputs& inputs);
  TensorRef upload(TensorRef to, const SliceCall& call, const MicroBatch& micro_batch,
                   std::span<const std::int32_t> values) const;
  SliceInputs embedding_inputs(const SliceCall& call, const MicroBatch& micro_batch) const;
  void upload_sparse_targets(SliceInputs& inputs, const SliceCall& call, const MicroBatch& micro_batch) const;
  void upload_labels(SliceInputs& inputs, const MicroBatch& micro_batch) const;
  void upload_texts(SliceInputs& inputs, const MicroBatch& micro_batch) const;
  SliceInputs head_inputs(const SliceCall& call, const MicroBatch& micro_batch) const;
  TransformerLayer& layer(int chunk, int index) {
    return model_.layers[static_cast<std::size_t>(plan_.cells().first_layer(chunk) + index)];
  }

  Backend& backend_;
  Model& model_;
  const StagePlan& plan_;
  Mesh& mesh_;
  PassGraphs graphs_;
};

}  // namespace teratron
