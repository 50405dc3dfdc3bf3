// The parts of a transformer layer that pre-norm and post-norm share: parameters, memory, and the choice of the pass.
#include "nn/transformer_layer.h"

namespace teratron {
namespace {

// Weights just before a residual add start smaller, so that the stream's variance does not grow with depth.
double residual_scale(const TransformerLayerConfig& config) {
  if (!config.scaled_init) return 1.0;
  return 1.0 / std::sqrt(2.0 * static_cast<double>(config.num_layers));
}

std::string prefix(std::int64_t layer) { return fmt::format("layers.{}.", layer); }

LayerNorm::Saved carve_statistics(const CallSizes& sizes, Carver& carver) {
  const Shape rows{sizes.stream_rows()};
  return {.mean = carver.take(sizes.accumulation, rows), .rstd = carver.take(sizes.accumulation, rows)};
}

}  // namespace

TransformerLayer::TransformerLayer(const TransformerLayerConfig& config, std::int64_t layer, GroupRank group)
    : norm1(prefix(layer) + "norm1", config.hidden_size, config.layernorm_epsilon, group),
      attention(prefix(layer) + "attention", config.hidden_size, config.num_attention_heads, residual_scale(config),
                config.attention_dropout, config.causal, layer, group),
      norm2(prefix(layer) + "norm2", config.hidden_size, config.layernorm_epsilon, group),
      mlp(prefix(layer) + "mlp", config.hidden_size, config.ffn_hidden_size, residual_scale(config), config.activation,
          group),
      hidden_dropout(config.hidden_dropout),
      norm_placement(config.norm_placement),
      index(layer) {
  visit([](Parameter& parameter) { parameter.layer_matrix = parameter.shape.rank() == 2; });
}

void TransformerLayer::visit(const ParameterVisitor& visitor) {
  norm1.visit(visitor);
  attention.visit(visitor);
  norm2.visit(visitor);
  mlp.visit(visitor);
}

TransformerLayer::Saved TransformerLayer::carve(const CallSizes& sizes, Recompute recompute, bool has_cache,
                                                Carver& kept, Carver& again) const {
  const std::int64_t b = sizes.batch, s = sizes.tokens;
  Carver& unless_full = recompute == Recompute::kFull ? again : kept;
  Carver& unless_any = recompute != Recompute::kNone ? again : kept;
  Saved saved;
  if (!has_cache) saved.attention.qkv = unless_full.take(sizes.compute, {b, s, packed_columns()});
  saved.attention.context = unless_any.take(sizes.compute, {b, s, attention.width()});
  saved.attention.log_sum_exp = unless_any.take(sizes.accumulation, {b, attention.heads, s});
  saved.norm1 = carve_statistics(sizes, unless_full);
  saved.sum1 = unless_full.take(sizes.compute, sizes.stream_shape(hidden_size()));
  saved.norm2 = carve_statistics(sizes, unless_full);
  saved.mlp.pre_activation = unless_full.take(sizes.compute, {b, s, ffn_columns()});
  if (!is_pre()) saved.sum2 = unless_full.take(sizes.compute, sizes.stream_shape(hidden_size()));
  return saved;
}

TransformerLayer::ProductGradients TransformerLayer::carve_gradients(const CallSizes& sizes, Carver& carver) const {
  const std::int64_t b = sizes.batch, s = sizes.tokens;
  ProductGradients gradients;
  gradients.mlp = carver.take(sizes.compute, {b, s, hidden_size()});
  gradients.up = carver.take(sizes.compute, {b, s, ffn_columns()});
  gradients.attention = carver.take(sizes.compute, {b, s, hidden_size()});
  gradients.qkv = carver.take(sizes.compute, {b, s, packed_columns()});
  return gradients;
}

TransformerLayer::ProductGradients TransformerLayer::in_workspace(const LayerPass& pass,
                                                                  const LayerWorkspace& w) const {
  // When the packed projection's is made, the MLP's wide one is used up.
  return {
      .mlp = w.branch, .up = activated(pass, w.wide), .attention = w.branch, .qkv = packed_projection(pass, w.wide)};
}

void TransformerLayer::forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
                               const Chain& chain) const {
  is_pre() ? pre_forward(pass, y, saved, w, chain) : post_forward(pass, y, saved, w);
}

void TransformerLayer::backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                const ProductGradients& gradients) const {
  is_pre() ? pre_backward(pass, dx, saved, w, gradients) : post_backward(pass, dx, saved, w, gradients);
}

void TransformerLayer::recompute(const LayerPass& pass, Recompute recompute, const Saved& saved,
                                 const LayerWorkspace& w) const {
  switch (recompute) {
    case Recompute::kNone: return;
    case Recompute::kSelective: return attention.recompute_context(pass, saved.attention);
    case Recompute::kFull:
      if (is_pre()) {
        pre_forward_to_mlp(pass, saved, w, /*is_normed=*/false);
        return mlp.up.forward(pass, saved.mlp.pre_activation, w.normed);
      }
      // The second norm comes last, so all of the layer is made again; its output takes the branch's memory.
      return post_forward(pass, pass.own_rows(w.dnormed), saved, w);
  }
}

TensorRef TransformerLayer::attention_input(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w) const {
  const TensorRef own = pass.own_rows(w.normed);
  if (is_pre()) {
    norm1.forward_again(pass, own, saved.x, saved.norm1);
  } else if (pass.sequence_parallel) {
    pass.backend.copy(own, saved.x);
  } else {
    return saved.x;
  }
  pass.gather_rows(w.normed);
  return w.normed;
}

TensorRef TransformerLayer::mlp_input(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w) const {
  const auto& [norm, statistics] = is_pre() ? std::tie(norm2, saved.norm2) : std::tie(norm1, saved.norm1);
  norm.forward_again(pass, pass.own_rows(w.normed), saved.sum1, statistics);
  pass.gather_rows(w.normed);
  return w.normed;
}

void TransformerLayer::weight_gradients(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w,
                                        const ProductGradients& gradients) const {
  mlp.weight_gradients(pass, gradients.mlp, gradients.up, mlp_input(pass, saved, w), saved.mlp);
  attention.weight_gradients(pass, gradients.attention, gradients.qkv, attention_input(pass, saved, w),
                             saved.attention);
}

TensorRef TransformerLayer::into_branch(const LayerPass& pass, TensorRef dx, const Dropout& dropout,
                                        TensorRef branch) const {
  if (dropout.active()) {
    pass.backend.dropout_backward({.dbranch = pass.own_rows(branch), .dsum = dx, .dropout = dropout});
  } else if (pass.sequence_parallel || pass.weights_later) {
    pass.backend.copy(pass.own_rows(branch), dx);
  } else {
    return dx;
  }
  pass.gather_rows(branch);
  return branch;
}

}  // namespace teratron
