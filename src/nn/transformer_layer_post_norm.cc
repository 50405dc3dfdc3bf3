// The passes of a post-norm layer: each sub-layer is added to what it reads, and the sum is normed.
#include "nn/transformer_layer.h"

namespace teratron {

// All before the MLP; returns its input, of which a rank's own rows stay in w.normed.
TensorRef TransformerLayer::post_forward_to_mlp(const Step& step, const Saved& saved, const LayerWorkspace& w) const {
  const TensorRef own_x1 = step.own_rows(w.normed);
  attention.forward(step, w.branch, attention_input(step, saved, w), saved.attention, packed_projection(step, w.wide));
  step.backend.residual_add_layer_norm({.add = {.sum = saved.sum1,
                                                .residual = saved.x,
                                                .branch = step.own_rows(w.branch),
                                                .dropout = dropout_after(step, 0)},
                                        .norm = norm1.call(own_x1, saved.sum1, saved.norm1)});
  step.gather_rows(w.normed);
  return w.normed;
}

void TransformerLayer::post_forward(const Step& step, TensorRef y, const Saved& saved, const LayerWorkspace& w) const {
  const TensorRef x1 = post_forward_to_mlp(step, saved, w);
  mlp.forward(step, w.branch, x1, saved.mlp, activated(step, w.wide));
  step.backend.residual_add_layer_norm({.add = {.sum = saved.sum2,
                                                .residual = step.own_rows(x1),
                                                .branch = step.own_rows(w.branch),
                                                .dropout = dropout_after(step, 1)},
                                        .norm = norm2.call(y, saved.sum2, saved.norm2)});
}

// dx, the gradient of the norm's output, becomes that of the sum that the norm read.
void TransformerLayer::post_norm_backward(const Step& step, const LayerNorm& norm, TensorRef dx, TensorRef sum,
                                          const LayerNorm::Saved& saved, const LayerWorkspace& w) const {
  const TensorRef dsum = step.own_rows(w.dnormed);
  norm.backward(step, dsum, dx, sum, saved, /*accumulate_dx=*/false);
  step.backend.copy(dx, dsum);
}

void TransformerLayer::post_backward(const Step& step, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                     const ProductGradients& gradients) const {
  const TensorRef dinput = step.own_rows(w.dnormed);  // of a sub-layer's input
  post_norm_backward(step, norm2, dx, saved.sum2, saved.norm2, w);
  const TensorRef dmlp = into_branch(step, dx, dropout_after(step, 1), gradients.mlp);
  mlp.backward(step, w.dnormed, dmlp, mlp_input(step, saved, w), saved.mlp, gradients.up);
  step.backend.add(dx, dinput);

  post_norm_backward(step, norm1, dx, saved.sum1, saved.norm1, w);
  const TensorRef dattention = into_branch(step, dx, dropout_after(step, 0), gradients.attention);
  const TensorRef dcontext(w.dnormed.data, w.dnormed.dtype, saved.attention.context.shape);
  attention.backward(step, w.dnormed, dattention, attention_input(step, saved, w), saved.attention, dcontext,
                     gradients.qkv);
  step.backend.add(dx, dinput);
}

}  // namespace teratron
