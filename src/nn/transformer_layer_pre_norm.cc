// The passes of a pre-norm layer: each sub-layer reads a norm of the residual stream and is added to it.
#include "nn/transformer_layer.h"

namespace teratron {

// All before the MLP, whose input is left in w.normed.
void TransformerLayer::pre_forward_to_mlp(const Step& step, const Saved& saved, const LayerWorkspace& w) const {
  const TensorRef normed = step.own_rows(w.normed);
  norm1.forward(step, normed, saved.x, saved.norm1);
  step.gather_rows(w.normed);
  attention.forward(step, w.branch, w.normed, saved.attention, packed_projection(step, w.wide));
  step.backend.residual_add_layer_norm({.add = {.sum = saved.sum1,
                                                .residual = saved.x,
                                                .branch = step.own_rows(w.branch),
                                                .dropout = dropout_after(step, 0)},
                                        .norm = norm2.call(normed, saved.sum1, saved.norm2)});
  step.gather_rows(w.normed);
}

void TransformerLayer::pre_forward(const Step& step, TensorRef y, const Saved& saved, const LayerWorkspace& w) const {
  pre_forward_to_mlp(step, saved, w);
  mlp.forward(step, w.branch, w.normed, saved.mlp, activated(step, w.wide));
  step.backend.residual_add(
      {.sum = y, .residual = saved.sum1, .branch = step.own_rows(w.branch), .dropout = dropout_after(step, 1)});
}

void TransformerLayer::pre_backward(const Step& step, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                    const ProductGradients& gradients) const {
  const TensorRef dnormed = step.own_rows(w.dnormed);
  const TensorRef dmlp = into_branch(step, dx, dropout_after(step, 1), gradients.mlp);
  mlp.backward(step, w.dnormed, dmlp, mlp_input(step, saved, w), saved.mlp, gradients.up);
  norm2.backward(step, dx, dnormed, saved.sum1, saved.norm2);

  const TensorRef dattention = into_branch(step, dx, dropout_after(step, 0), gradients.attention);
  const TensorRef dcontext(w.dnormed.data, w.dnormed.dtype, saved.attention.context.shape);
  attention.backward(step, w.dnormed, dattention, attention_input(step, saved, w), saved.attention, dcontext,
                     gradients.qkv);
  norm1.backward(step, dx, dnormed, saved.x, saved.norm1);
}

}  // namespace teratron
