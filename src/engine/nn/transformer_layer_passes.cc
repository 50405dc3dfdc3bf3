// The passes of a transformer layer. Pre-norm and parallel: each sub-layer reads a norm of the residual stream and is
// added to it; where they are parallel, both norms read the layer's input. Post-norm: each sub-layer's output is added
// to its input, and the sum is normed.
#include "nn/transformer_layer.h"

namespace teratron {

// Everything before the MLP, whose input is written to w.normed.
void TransformerLayer::pre_forward_to_mlp(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w,
                                          bool is_normed) const {
  const TensorRef normed = pass.own_rows(w.normed);
  if (!is_normed) norm1.forward(pass, normed, saved.x, saved.norm1);
  pass.gather_rows(w.normed);
  attention.forward(pass, w.branch, w.normed, saved.attention, in_wide(pass, w));
  const ResidualAdd add{
      .sum = saved.sum1, .residual = saved.x, .branch = pass.own_rows(w.branch), .dropout = dropout_after(pass, 0)};
  if (is_sequential()) {
    pass.backend.residual_add_norm({.add = add, .norm = norm2.call(normed, saved.sum1, saved.norm2)});
  } else {
    pass.backend.residual_add(add);
    norm2.forward(pass, normed, saved.x, saved.norm2);
  }
  pass.gather_rows(w.normed);
}

void TransformerLayer::pre_forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
                                   const Chain& chain) const {
  pre_forward_to_mlp(pass, saved, w, chain.is_normed);
  mlp.forward(pass, w.branch, w.normed, saved.mlp, activated(pass, w.wide));
  const ResidualAdd add{
      .sum = y, .residual = saved.sum1, .branch = pass.own_rows(w.branch), .dropout = dropout_after(pass, 1)};
  if (chain.next == nullptr) return pass.backend.residual_add(add);
  pass.backend.residual_add_norm({.add = add, .norm = chain.next->call(pass.own_rows(w.normed), y, chain.next_saved)});
}

void TransformerLayer::pre_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                    const ProductGradients& gradients) const {
  const TensorRef dnormed = pass.own_rows(w.dnormed);
  TensorRef dsum1 = dx;
  if (!is_sequential()) {  // which nothing else of the backward reads
    dsum1 = saved.sum1;
    pass.backend.copy(dsum1, dx);
  }
  mlp_backward(pass, into_branch(pass, dx, dropout_after(pass, 1), gradients.mlp), saved, w, gradients);
  norm2.backward(pass, dx, dnormed, is_sequential() ? saved.sum1 : saved.x, saved.norm2);

  attention_backward(pass, into_branch(pass, dsum1, dropout_after(pass, 0), gradients.attention), saved, w, gradients);
  norm1.backward(pass, dx, dnormed, saved.x, saved.norm1);
}

// All before the MLP; returns its input, of which a rank's own rows stay in w.normed.
TensorRef TransformerLayer::post_forward_to_mlp(const LayerPass& pass, const Saved& saved,
                                                const LayerWorkspace& w) const {
  const TensorRef own_x1 = pass.own_rows(w.normed);
  attention.forward(pass, w.branch, attention_input(pass, saved, w), saved.attention, in_wide(pass, w));
  pass.backend.residual_add_norm({.add = {.sum = saved.sum1,
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
  pass.backend.residual_add_norm({.add = {.sum = saved.sum2,
                                          .residual = pass.own_rows(x1),
                                          .branch = pass.own_rows(w.branch),
                                          .dropout = dropout_after(pass, 1)},
                                  .norm = norm2.call(y, saved.sum2, saved.norm2)});
}

// dx, the gradient of the norm's output, becomes that of the sum that the norm read.
void TransformerLayer::post_norm_backward(const LayerPass& pass, const Norm& norm, TensorRef dx, TensorRef sum,
                                          const Norm::Saved& saved, const LayerWorkspace& w) const {
  const TensorRef dsum = pass.own_rows(w.dnormed);
  norm.backward(pass, dsum, dx, sum, saved, /*accumulate_dx=*/false);
  pass.backend.copy(dx, dsum);
}

void TransformerLayer::post_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                     const ProductGradients& gradients) const {
  const TensorRef dinput = pass.own_rows(w.dnormed);  // of a sub-layer's input
  post_norm_backward(pass, norm2, dx, saved.sum2, saved.norm2, w);
  mlp_backward(pass, into_branch(pass, dx, dropout_after(pass, 1), gradients.mlp), saved, w, gradients);
  pass.backend.add(dx, dinput);

  post_norm_backward(pass, norm1, dx, saved.sum1, saved.norm1, w);
  attention_backward(pass, into_branch(pass, dx, dropout_after(pass, 0), gradients.attention), saved, w, gradients);
  pass.backend.add(dx, dinput);
}

}  // namespace teratron
