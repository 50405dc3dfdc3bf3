// The passes of a pre-norm layer: each sub-layer reads a norm of the residual stream and is added to it.
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

}  // namespace teratron
