// The passes of a transformer layer. Pre-norm and parallel: each sub-layer reads a norm of the residual stream and is
// added to it; where they are parallel, both norms read the layer's input. Post-norm: each sub-layer's output is added
// to its input, and the sum is normed.
#include <algorithm>
#include <initializer_list>

#include "nn/transformer_layer.h"

namespace teratron {

// Everything before the MLP; returns its input.
TensorRef TransformerLayer::pre_forward_to_mlp(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w,
                                               bool is_normed) const {
  const TensorRef into_attention = place_of(saved.normed1, w), into_mlp = place_of(saved.normed2, w);
  if (!is_normed) norm1.forward(pass, pass.own_rows(into_attention), saved.x, saved.norm1);
  pass.gather_rows(into_attention);
  attention.forward(pass, w.branch, into_attention, saved.attention, in_wide(pass, w));
  const ResidualAdd add{
      .sum = saved.sum1, .residual = saved.x, .branch = pass.own_rows(w.branch), .dropout = dropout_after(pass, 0)};
  if (is_sequential()) {
    pass.backend.residual_add_norm({.add = add, .norm = norm2.call(pass.own_rows(into_mlp), saved.sum1, saved.norm2)});
  } else {
    pass.backend.residual_add(add);
    norm2.forward(pass, pass.own_rows(into_mlp), saved.x, saved.norm2);
  }
  pass.gather_rows(into_mlp);
  return into_mlp;
}

void TransformerLayer::pre_forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
                                   const Chain& chain) const {
  const TensorRef into_mlp = pre_forward_to_mlp(pass, saved, w, chain.is_normed);
  mlp.forward(pass, w.branch, into_mlp, saved.mlp, activated(pass, w.wide));
  const ResidualAdd add{
      .sum = y, .residual = saved.sum1, .branch = pass.own_rows(w.branch), .dropout = dropout_after(pass, 1)};
  if (chain.next == nullptr) return pass.backend.residual_add(add);
  const TensorRef next = pass.own_rows(place_of(chain.next_normed, w));
  pass.backend.residual_add_norm({.add = add, .norm = chain.next->call(next, y, chain.next_saved)});
}

void TransformerLayer::pre_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                    const ProductGradients& gradients, const BackwardChain& chain) const {
  const TensorRef dnormed = pass.own_rows(w.dnormed);
  const Dropout of_attention = dropout_after(pass, 0);
  TensorRef dsum1 = dx;
  if (!is_sequential()) {  // the norms add to dx, so the gradient of sum1 is kept where sum1, no longer read, was
    dsum1 = saved.sum1;
    pass.backend.copy(dsum1, dx);
  }
  if (chain.has_branch) pass.gather_rows(gradients.mlp);
  mlp_backward(pass, chain.has_branch ? gradients.mlp : into_branch(pass, dx, dropout_after(pass, 1), gradients.mlp),
               saved, w, gradients);
  TensorRef dattention;
  if (is_sequential()) {
    dattention = norm_into_branch(pass, norm2, {.dx = dx, .dy = dnormed, .x = saved.sum1, .saved = saved.norm2},
                                  of_attention, gradients.attention);
  } else {
    norm2.backward(pass, dx, dnormed, saved.x, saved.norm2);
    dattention = into_branch(pass, dsum1, of_attention, gradients.attention);
  }
  attention_backward(pass, dattention, saved, w, gradients);
  if (chain.before == nullptr) return norm1.backward(pass, dx, dnormed, saved.x, saved.norm1);
  norm1.backward(pass, dx, dnormed, saved.x, saved.norm1, /*accumulate_dx=*/true, pass.own_rows(chain.before_mlp),
                 chain.before->dropout_after(pass, 1));
}

// Everything before the MLP; returns its input, whose own rows are the residual of the second sum.
TensorRef TransformerLayer::post_forward_to_mlp(const LayerPass& pass, const Saved& saved,
                                                const LayerWorkspace& w) const {
  const TensorRef x1 = place_of(saved.normed1, w);
  attention.forward(pass, w.branch, attention_input(pass, saved, w), saved.attention, in_wide(pass, w));
  pass.backend.residual_add_norm({.add = {.sum = saved.sum1,
                                          .residual = saved.x,
                                          .branch = pass.own_rows(w.branch),
                                          .dropout = dropout_after(pass, 0)},
                                  .norm = norm1.call(pass.own_rows(x1), saved.sum1, saved.norm1)});
  pass.gather_rows(x1);
  return x1;
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

// dx, the gradient of the norm's output, becomes that of the sum that the norm read. Returns the gradient that enters
// the branch of that sum.
TensorRef TransformerLayer::post_norm_backward(const LayerPass& pass, const Norm& norm, TensorRef dx, TensorRef sum,
                                               const Norm::Saved& saved, const LayerWorkspace& w,
                                               const Dropout& dropout, TensorRef branch) const {
  const TensorRef dsum = pass.own_rows(w.dnormed);
  const TensorRef into = norm_into_branch(
      pass, norm, {.dx = dsum, .dy = dx, .x = sum, .saved = saved, .accumulate_dx = false}, dropout, branch);
  pass.backend.copy(dx, dsum);
  return into.data == dsum.data ? dx : into;
}

void TransformerLayer::post_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                                     const ProductGradients& gradients) const {
  const TensorRef dinput = pass.own_rows(w.dnormed);  // of a sub-layer's input
  const TensorRef dmlp =
      post_norm_backward(pass, norm2, dx, saved.sum2, saved.norm2, w, dropout_after(pass, 1), gradients.mlp);
  mlp_backward(pass, dmlp, saved, w, gradients);
  pass.backend.add(dx, dinput);

  const TensorRef dattention =
      post_norm_backward(pass, norm1, dx, saved.sum1, saved.norm1, w, dropout_after(pass, 0), gradients.attention);
  attention_backward(pass, dattention, saved, w, gradients);
  pass.backend.add(dx, dinput);
}

// A sum of the residual stream stands for the product that was added to it, whose own result is no longer in memory.
std::string TransformerLayer::first_result(const LayerPass& pass, TensorRef y, const Saved& saved,
                                           const LayerWorkspace& w,
                                           const std::function<bool(TensorRef)>& is_wanted) const {
  const bool is_post = norm_placement == NormPlacement::kPost;
  // A projection may hold the whole sequence; only this call's rows are there.
  const auto is_wanted_of_call = [&](TensorRef projected) {
    for (std::int64_t sequence = 0; projected && sequence < pass.batch; ++sequence) {
      const std::int64_t begin = projected.dim(1) == pass.tokens ? 0 : pass.first_position;
      if (is_wanted(projected.select(0, sequence).slice(0, begin, begin + pass.tokens))) return true;
    }
    return false;
  };
  const auto any = [&](std::initializer_list<TensorRef> results) {
    return std::ranges::any_of(results, [&](TensorRef result) { return result && is_wanted(result); });
  };
  const Attention::Saved& kept = saved.attention;
  if (!is_post && any({saved.norm1.mean, saved.norm1.rstd})) return "the first norm";
  if (is_wanted_of_call(kept.qkv) || is_wanted_of_call(kept.key_value))
    return "the product of queries, keys and values";
  if (any({kept.queries, kept.keys})) return "the norms of queries and keys";
  if (any({kept.log_sum_exp})) return "the attention scores";
  if (any({kept.context})) return "attention";
  if (any({saved.sum1})) return "the projection of attention";
  if (is_post && any({saved.norm1.mean, saved.norm1.rstd})) return "the first norm";
  if (!is_post && any({saved.norm2.mean, saved.norm2.rstd})) return "the second norm";
  if (any({saved.mlp.gate})) return "the FFN's gate product";
  if (any({saved.mlp.up})) return "the FFN's up product";
  if (any({saved.mlp.activated ? saved.mlp.activated : activated(pass, w.wide)})) return "the FFN's activation";
  if (any({is_post ? saved.sum2 : y})) return "the FFN's down product";
  return any({y}) ? "the second norm" : "";
}

}  // namespace teratron
