#include "model/transformer_layer.h"

namespace teratron {
namespace {

// Weights just before a residual add start smaller, so that the stream's variance does not grow with depth.
double residual_scale(const ModelConfig& config) {
  return 1.0 / std::sqrt(2.0 * static_cast<double>(config.num_layers));
}

std::string prefix(std::int64_t layer) { return fmt::format("layers.{}.", layer); }
std::string hugging_face_prefix(std::int64_t layer) { return fmt::format("transformer.h.{}.", layer); }

}  // namespace

TransformerLayer::TransformerLayer(const ModelConfig& config, std::int64_t layer, TensorPlace place)
    : norm1(prefix(layer) + "norm1", config.hidden_size, config.layernorm_epsilon, hugging_face_prefix(layer) + "ln_1",
            place),
      attention(prefix(layer) + "attention", config.hidden_size, config.num_attention_heads, residual_scale(config),
                config.attention_dropout, layer, hugging_face_prefix(layer) + "attn", place),
      norm2(prefix(layer) + "norm2", config.hidden_size, config.layernorm_epsilon, hugging_face_prefix(layer) + "ln_2",
            place),
      mlp(prefix(layer) + "mlp", config.hidden_size, config.ffn_hidden_size(), residual_scale(config),
          config.activation, hugging_face_prefix(layer) + "mlp", place),
      hidden_dropout(config.hidden_dropout),
      index(layer) {}

void TransformerLayer::visit(const ParameterVisitor& visitor) {
  norm1.visit(visitor);
  attention.visit(visitor);
  norm2.visit(visitor);
  mlp.visit(visitor);
}

void TransformerLayer::forward_to_mlp(const Step& step, const Saved& saved, const LayerWorkspace& w) const {
  const TensorRef normed = step.own_rows(w.normed);
  norm1.forward(step, normed, saved.x, saved.norm1);
  step.gather_rows(w.normed);
  attention.forward(step, w.branch, w.normed, saved.attention, packed_projection(step, w.wide));
  step.backend.residual_add_layer_norm(
      {.sum = saved.x1, .residual = saved.x, .branch = step.own_rows(w.branch), .dropout = dropout_after(step, 0)},
      norm2.call(normed, saved.x1, saved.norm2));
  step.gather_rows(w.normed);
}

void TransformerLayer::forward(const Step& step, TensorRef y, const Saved& saved, const LayerWorkspace& w) const {
  forward_to_mlp(step, saved, w);
  mlp.forward(step, w.branch, w.normed, saved.mlp, w.wide);
  step.backend.residual_add(
      {.sum = y, .residual = saved.x1, .branch = step.own_rows(w.branch), .dropout = dropout_after(step, 1)});
}

void TransformerLayer::recompute(const Step& step, Recompute recompute, const Saved& saved,
                                 const LayerWorkspace& w) const {
  switch (recompute) {
    case Recompute::kNone: return;
    case Recompute::kSelective: return attention.recompute_context(step, saved.attention);
    case Recompute::kFull:
      forward_to_mlp(step, saved, w);
      mlp.up.forward(step, saved.mlp.pre_activation, w.normed);
      return;
  }
}

TransformerLayer::ProductGradients TransformerLayer::in_workspace(const Step& step, const LayerWorkspace& w) const {
  // When the packed projection's is made, the MLP's wide one is used up.
  return {.mlp = w.branch, .up = w.wide, .attention = w.branch, .qkv = packed_projection(step, w.wide)};
}

void TransformerLayer::backward(const Step& step, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                const ProductGradients& gradients) const {
  const TensorRef normed = step.own_rows(w.normed), dnormed = step.own_rows(w.dnormed);
  const TensorRef dmlp = into_branch(step, dx, dropout_after(step, 1), gradients.mlp);
  norm2.forward_again(step, normed, saved.x1, saved.norm2);
  step.gather_rows(w.normed);
  mlp.backward(step, w.dnormed, dmlp, w.normed, saved.mlp, gradients.up);
  norm2.backward(step, dx, dnormed, saved.x1, saved.norm2);

  const TensorRef dattention = into_branch(step, dx, dropout_after(step, 0), gradients.attention);
  norm1.forward_again(step, normed, saved.x, saved.norm1);
  step.gather_rows(w.normed);
  const TensorRef dcontext(w.dnormed.data, w.dnormed.dtype, saved.attention.context.shape);
  attention.backward(step, w.dnormed, dattention, w.normed, saved.attention, dcontext, gradients.qkv);
  norm1.backward(step, dx, dnormed, saved.x, saved.norm1);
}

void TransformerLayer::weight_gradients(const Step& step, const Saved& saved, const LayerWorkspace& w,
                                        const ProductGradients& gradients) const {
  norm2.forward_again(step, step.own_rows(w.normed), saved.x1, saved.norm2);
  step.gather_rows(w.normed);
  mlp.weight_gradients(step, gradients.mlp, gradients.up, w.normed, saved.mlp);
  norm1.forward_again(step, step.own_rows(w.normed), saved.x, saved.norm1);
  step.gather_rows(w.normed);
  attention.weight_gradients(step, gradients.attention, gradients.qkv, w.normed, saved.attention);
}

TensorRef TransformerLayer::into_branch(const Step& step, TensorRef dx, const Dropout& dropout,
                                        TensorRef branch) const {
  if (dropout.active()) {
    step.backend.dropout_backward(step.own_rows(branch), dx, dropout);
  } else if (step.sequence_parallel || step.weights_later) {
    step.backend.copy(step.own_rows(branch), dx);
  } else {
    return dx;
  }
  step.gather_rows(branch);
  return branch;
}

}  // namespace teratron
