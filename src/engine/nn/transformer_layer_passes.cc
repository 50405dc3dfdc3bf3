// The passes of a transformer layer. Pre-norm: each sub-layer reads a norm of the residual stream and is added to it.
// Post-norm: each sub-layer's output is added to its input, and the sum is normed.
#include "nn/transformer_layer.h"

namespace teratron {

// Everything before the MLP, whose input is written to w.normed.
void TransformerLayer::pre_forward_to_mlp(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w,
                                          bool is_normed) const {
  const TensorRef normed = pass.own_rows(w.normed);
  if (!is_normed) norm1.forward(pass, normed, saved.x, saved.norm1);
  pass.gather_rows(w.normed);
  attention.forward(pass, w.branch, w.normed, saved.attention, packed_projection(pass, w.wide));
  pass.backend.residual_add_layer_norm({.add = {.sum = saved.sum1,
                                                .residual = saved.x,
                                                .branch = pass.own_rows(w.branch),
                                                .dropout = dropout_after(pass, 0)},
                                        .norm = norm2.call(normed, saved.sum1, saved.norm2)});
  pass.gather_rows(w.normed);
}

void TransformerLayer::pre_forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
                                   const Chain& chain) const {
  pre_forward_to_mlp(pass, saved, w, chain.is_normed);
  mlp.forward(pass, w.branch, w.normed, saved.mlp, activated(pass, w.wide));
  const ResidualAdd add{
      .sum = y, .residual = saved.sum1, .branch = pass.own_rows(w.branch), .dropout = dropout_after(pass, 1)};
  if (chain.next == nullptr) return pass.backend.residual_add(add);
  pass.backend.residual_add_layer_norm(
      {.add = add, .norm = chain.next->call(pass.own_rows(w.normed), y, chain.next_saved)});
}

void TransformerLayer::pre_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                    const ProductGradients& gradients) const {
  const TensorRef dnormed = pass.own_rows(w.dnormed);
  const TensorRef dmlp = into_branch(pass, dx, dropout_after(pass, 1), gradients.mlp);
  mlp.backward(pass, w.dnormed, dmlp, mlp_input(pass, saved, w), saved.mlp, gradients.up);
  norm2.backward(pass, dx, dnormed, saved.sum1, saved.norm2);

  const TensorRef dattention = into_branch(pass, dx, dropout_after(pass, 0), gradients.attention);
  const TensorRef dcontext(w.dnormed.data, w.dnormed.dtype, saved.attention.context.shape);
  attention.backward(pass, w.dnormed, dattention, attention_input(pass, saved, w), saved.attention, dcontext,
                     gradients.qkv);
  norm1.backward(pass, dx, dnormed, saved.x, saved.norm1);
}

// All before the MLP; returns its input, of which a rank's own rows stay in w.normed.
TensorRef TransformerLayer::post_forward_to_mlp(const LayerPass& pass, const Saved& saved,
                                                const LayerWorkspace& w) const {
  const TensorRef own_x1 = pass.own_rows(w.normed);
  attention.forward(pass, w.branch, attention_input(pass, saved, w), saved.attention, packed_projection(pass, w.wide));
  pass.backend.residual_add_layer_norm({.add = {.sum = saved.sum1,
                                                .residual = saved.x,
                                                .branch = pass.own_rows(w.branch),
                                                .dropout = dropout_after(pass, 0)},
                                        .norm = norm1.call(own_x1, saved.sum1, saved.norm1)});
  pass.gather_rows(w.normed);
  return w.normed;
}

void TransformerLayer::post_forward(const LayerPass& pass, TensorRef y, const Saved& saved,
                                    const LayerWorkspace& w) const {
  const TensorRef x1 = post_forward_to_mlp(pass, saved, w);
  mlp.forward(pass, w.branch, x1, saved.mlp, activated(pass, w.wide));
  pass.backend.residual_add_layer_norm({.add = {.sum = saved.sum2,
                                                .residual = pass.own_rows(x1),
                                                .branch = pass.own_rows(w.branch),
                                                .dropout = dropout_after(pass, 1)},
                                        .norm = norm2.call(y, saved.sum2, saved.norm2)});
}

// dx, the gradient of the norm's output, becomes that of the sum that the norm read.
void TransformerLayer::post_norm_backward(const LayerPass& pass, const LayerNorm& norm, TensorRef dx, TensorRef sum,
                                          const LayerNorm::Saved& saved, const LayerWorkspace& w) const {
  const TensorRef dsum = pass.own_rows(w.dnormed);
  norm.backward(pass, dsum, dx, sum, saved, /*accumulate_dx=*/false);
  pass.backend.copy(dx, dsum);
}

void TransformerLayer::post_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                     const ProductGradients& gradients) const {
  const TensorRef dinput = pass.own_rows(w.dnormed);  // of a sub-layer's input
  post_norm_backward(pass, norm2, dx, saved.sum2, saved.norm2, w);
  const TensorRef dmlp = into_branch(pass, dx, dropout_after(pass, 1), gradients.mlp);
  mlp.backward(pass, w.dnormed, dmlp, mlp_input(pass, saved, w), saved.mlp, gradients.up);
  pass.backend.add(dx, dinput);

  post_norm_backward(pass, norm1, dx, saved.sum1, saved.norm1, w);
  const TensorRef dattention = into_branch(pass, dx, dropout_after(pass, 0), gradients.attention);
  const TensorRef dcontext(w.dnormed.data, w.dnormed.dtype, saved.attention.context.shape);
  attention.backward(pass, w.dnormed, dattention, attention_input(pass, saved, w), saved.attention, dcontext,
                     gradients.qkv);
  pass.backend.add(dx, dinput);
}

}  // namespace teratron
