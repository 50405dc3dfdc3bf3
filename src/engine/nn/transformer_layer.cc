// What all placements of a layer's norms share: parameters, memory, and the choice of the pass.
#include "nn/transformer_layer.h"

namespace teratron {
namespace {

// Weights just before a residual add start smaller, so that the stream's variance does not grow with depth.
double residual_scale(const TransformerLayerConfig& config) {
  if (!config.scaled_init) return 1.0;
  return 1.0 / std::sqrt(2.0 * static_cast<double>(config.num_layers));
}

std::string prefix(std::int64_t layer) { return fmt::format("layers.{}.", layer); }

NormShape norm_shape(const TransformerLayerConfig& config, NormKind kind, std::int64_t columns) {
  return {.kind = kind, .columns = columns, .epsilon = config.layernorm_epsilon};
}
NormShape stream_norm(const TransformerLayerConfig& config) {
  return norm_shape(config, config.norm, config.hidden_size);
}

AttentionConfig attention_config(const TransformerLayerConfig& config) {
  AttentionConfig attention{.hidden_size = config.hidden_size,
                            .heads = config.num_attention_heads,
                            .key_heads = config.num_key_value_heads,
                            .head_size = config.head_size,
                            .residual_scale = residual_scale(config),
                            .dropout = config.attention_dropout,
                            .causal = config.causal,
                            .window = config.window,
                            .bias = config.qkv_bias,
                            .output_bias = config.bias,
                            .rotary = config.rotary,
                            .adapters = config.adapters};
  if (config.head_norms) attention.head_norm = norm_shape(config, NormKind::kRms, config.head_size);
  return attention;
}

MlpConfig mlp_config(const TransformerLayerConfig& config) {
  return {.hidden_size = config.hidden_size,
          .ffn_hidden_size = config.ffn_hidden_size,
          .activation = config.activation,
          .gated = config.gated,
          .bias = config.bias,
          .residual_scale = residual_scale(config),
          .adapters = config.adapters};
}

}  // namespace

template <class Self, class Use>
void TransformerLayer::for_each_adapter(Self& self, const Use& use) {
  const auto use_all = [&](auto& linear) {
    for (auto& adapter : linear.adapters) use(adapter);
  };
  Attention::for_each_linear(self.attention, use_all);
  Mlp::for_each_linear(self.mlp, use_all);
}

TransformerLayer::TransformerLayer(const TransformerLayerConfig& config, std::int64_t layer, GroupRank group)
    : norm1(prefix(layer) + "norm1", stream_norm(config), group),
      attention(prefix(layer) + "attention", attention_config(config), layer, group),
      norm2(prefix(layer) + "norm2", stream_norm(config), group),
      mlp(prefix(layer) + "mlp", mlp_config(config), group),
      hidden_dropout(config.hidden_dropout),
      norm_placement(config.norm_placement),
      index(layer) {
  visit([](Parameter& parameter) { parameter.layer_matrix = parameter.shape.rank() == 2 && !parameter.adapter; });
  std::uint32_t stream = Adapter::kFirstStream + static_cast<std::uint32_t>(layer) * Adapter::kMostInLayer;
  for_each_adapter(*this, [&](Adapter& adapter) { adapter.stream = stream++; });
}

std::int64_t TransformerLayer::adapter_bytes(const CallSizes& sizes) const {
  std::int64_t most = 0;
  for_each_adapter(*this, [&](const Adapter& adapter) { most = std::max(most, adapter.bytes(sizes)); });
  return most;
}

std::int64_t TransformerLayer::adapter_rank() const {
  std::int64_t rank = 0;
  for_each_adapter(*this, [&](const Adapter& adapter) { rank = adapter.a.shape[0]; });
  return rank;
}

void TransformerLayer::visit(const ParameterVisitor& visitor) {
  norm1.visit(visitor);
  attention.visit(visitor);
  norm2.visit(visitor);
  mlp.visit(visitor);
}

Work TransformerLayer::work() const {
  Work work{.norms = 2, .residual_adds = 2};
  attention.add_to(work);
  mlp.add_to(work);
  return work;
}

TransformerLayer::Saved TransformerLayer::carve(const CallSizes& sizes, const KeptActivations& keeping, Carver& kept,
                                                Carver& again) const {
  Carver& unless_full = keeping.recompute == Recompute::kFull ? again : kept;
  Carver& unless_any = keeping.recompute != Recompute::kNone ? again : kept;
  Saved saved;
  attention.carve(sizes, keeping.has_cache, unless_full, unless_any, saved.attention);
  saved.norm1 = norm1.carve(sizes, sizes.stream_rows(), unless_full);
  saved.sum1 = unless_full.take(sizes.compute, sizes.stream_shape(hidden_size()));
  saved.norm2 = norm2.carve(sizes, sizes.stream_rows(), unless_full);
  mlp.carve(sizes, keeping.cheap_ones, unless_full, saved.mlp);
  const bool is_post = norm_placement == NormPlacement::kPost;
  if (is_post) saved.sum2 = unless_full.take(sizes.compute, sizes.stream_shape(hidden_size()));
  if (keeping.cheap_ones && !sizes.sequence_parallel) {
    const Shape full{sizes.batch, sizes.tokens, hidden_size()};
    saved.normed1 = kept.take(sizes.compute, full);
    if (!is_post) saved.normed2 = kept.take(sizes.compute, full);  // post-norm: the next layer's input
  }
  return saved;
}

TransformerLayer::ProductGradients TransformerLayer::carve_gradients(const CallSizes& sizes, Carver& carver) const {
  const auto rows = [&](std::int64_t columns) {
    return carver.take(sizes.compute, {sizes.batch, sizes.tokens, columns});
  };
  ProductGradients gradients;
  gradients.mlp = rows(hidden_size());
  gradients.up = rows(mlp.columns());
  gradients.attention = rows(hidden_size());
  gradients.qkv = rows(attention.qkv.outputs());
  if (attention.key_value) gradients.key_value = rows(attention.key_value->outputs());
  return gradients;
}

Attention::Workspace TransformerLayer::in_wide(const LayerPass& pass, const LayerWorkspace& w) const {
  const Shape first{pass.batch, pass.tokens, attention.qkv.outputs()};
  Attention::Workspace workspace{.qkv = {w.wide.data, w.wide.dtype, first}, .heads = w.heads, .share = w.branch};
  if (attention.key_value) {
    const Shape second{pass.batch, pass.tokens, attention.key_value->outputs()};
    workspace.key_value = {static_cast<std::byte*>(w.wide.data) + workspace.qkv.bytes(), w.wide.dtype, second};
  }
  if (w.dnormed) {  // alive before the gradient that it holds for the layer
    workspace.dcontext = {w.dnormed.data, w.dnormed.dtype, {pass.batch, pass.tokens, attention.width()}};
  }
  return workspace;
}

TransformerLayer::ProductGradients TransformerLayer::in_workspace(const LayerPass& pass,
                                                                  const LayerWorkspace& w) const {
  // When those of the projections are made, the MLP's wide one is used up.
  const Attention::Workspace projections = in_wide(pass, w);
  return {.mlp = w.branch,
          .up = activated(pass, w.wide),
          .attention = w.branch,
          .qkv = projections.qkv,
          .key_value = projections.key_value};
}

void TransformerLayer::forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
                               const Chain& chain) const {
  if (norm_placement == NormPlacement::kPost) return post_forward(pass, y, saved, w);
  pre_forward(pass, y, saved, w, chain);
}

void TransformerLayer::backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                const ProductGradients& gradients, const BackwardChain& chain) const {
  if (norm_placement == NormPlacement::kPost) return post_backward(pass, dx, saved, w, gradients);
  pre_backward(pass, dx, saved, w, gradients, chain);
}

void TransformerLayer::recompute(const LayerPass& pass, Recompute recompute, const Saved& saved,
                                 const LayerWorkspace& w) const {
  switch (recompute) {
    case Recompute::kNone: return;
    case Recompute::kSelective: return attention.recompute_context(pass, saved.attention);
    case Recompute::kFull:
      if (norm_placement != NormPlacement::kPost) {
        return mlp.recompute(pass, pre_forward_to_mlp(pass, saved, w, /*is_normed=*/false), saved.mlp);
      }
      // The second norm comes last, so all of the layer is made again; its output goes to dnormed, which is free then.
      return post_forward(pass, pass.own_rows(w.dnormed), saved, w);
  }
}

void TransformerLayer::mlp_backward(const LayerPass& pass, TensorRef dmlp, const Saved& saved, const LayerWorkspace& w,
                                    const ProductGradients& gradients) const {
  mlp.backward(pass, w.dnormed, dmlp, mlp_input(pass, saved, w), saved.mlp, gradients.up, w.branch);
}

void TransformerLayer::attention_backward(const LayerPass& pass, TensorRef dattention, const Saved& saved,
                                          const LayerWorkspace& w, const ProductGradients& gradients) const {
  Attention::Workspace workspace = in_wide(pass, w);
  workspace.qkv = gradients.qkv;
  workspace.key_value = gradients.key_value;
  attention.backward(pass, w.dnormed, dattention, attention_input(pass, saved, w), saved.attention, workspace);
}

TensorRef TransformerLayer::attention_input(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w) const {
  const TensorRef own = pass.own_rows(w.normed);
  if (norm_placement != NormPlacement::kPost) {
    if (saved.normed1) return saved.normed1;
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
  const bool is_post = norm_placement == NormPlacement::kPost;
  const Norm& norm = is_post ? norm1 : norm2;
  if (const TensorRef kept = is_post ? saved.normed1 : saved.normed2) return kept;
  norm.forward_again(pass, pass.own_rows(w.normed), is_sequential() ? saved.sum1 : saved.x,
                     is_post ? saved.norm1 : saved.norm2);
  pass.gather_rows(w.normed);
  return w.normed;
}

void TransformerLayer::weight_gradients(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w,
                                        const ProductGradients& gradients) const {
  mlp.weight_gradients(pass, gradients.mlp, gradients.up, mlp_input(pass, saved, w), saved.mlp);
  attention.weight_gradients(pass, gradients.attention, gradients.qkv, gradients.key_value,
                             attention_input(pass, saved, w), saved.attention);
}

TensorRef TransformerLayer::into_branch(const LayerPass& pass, TensorRef dx, const Dropout& dropout,
                                        TensorRef branch) const {
  if (!has_own_branch(pass, dropout)) return dx;
  pass.backend.dropout_backward({.dbranch = pass.own_rows(branch), .dsum = dx, .dropout = dropout});
  pass.gather_rows(branch);
  return branch;
}

TensorRef TransformerLayer::norm_into_branch(const LayerPass& pass, const Norm& norm, const NormGradient& call,
                                             const Dropout& dropout, TensorRef branch) const {
  const auto& [dx, dy, x, saved, accumulate_dx] = call;
  if (!has_own_branch(pass, dropout)) {
    norm.backward(pass, dx, dy, x, saved, accumulate_dx);
    return dx;
  }
  norm.backward(pass, dx, dy, x, saved, accumulate_dx, pass.own_rows(branch), dropout);
  pass.gather_rows(branch);
  return branch;
}

}  // namespace teratron
