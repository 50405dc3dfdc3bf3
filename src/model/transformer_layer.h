// One pre-LN transformer layer (GPT-2; Figure 7b of the Megatron-LM paper for BERT), forward and its mirror:
//   x1 = x  + dropout(attention(LN1(x)))
//   y  = x1 + dropout(mlp(LN2(x1)))
#pragma once

#include <string>

#include "model/config.h"
#include "nn/attention.h"
#include "nn/layer_norm.h"
#include "nn/mlp.h"

namespace teratron {

// What is made again in the backward pass instead of being kept (Korthikanti et al., arXiv 2205.05198): the attention
// of each head, or of each layer all but its input. The bits are the same.
enum class Recompute { kNone, kSelective, kFull };

// Written by every layer in turn, alive only within one call. [batch, tokens, ..]
struct LayerWorkspace {
  TensorRef normed;   // [.., hidden]: output of a layer norm
  TensorRef branch;   // [.., hidden]: what is added to the residual stream, and its gradient
  TensorRef dnormed;  // [.., hidden], training only
  TensorRef wide;     // [.., 4 hidden / size]: the MLP's activation; in backward dffn, then dqkv
};

struct TransformerLayer {
  LayerNorm norm1;
  Attention attention;
  LayerNorm norm2;
  Mlp mlp;
  double hidden_dropout;
  std::int64_t index;

  TransformerLayer(const ModelConfig& config, std::int64_t layer, TensorPlace place);

  struct Saved {
    TensorRef x;  // the input, as all of the residual stream of Step::stream_shape
    LayerNorm::Saved norm1;
    Attention::Saved attention;
    TensorRef x1;  // between the two residual adds
    LayerNorm::Saved norm2;
    Mlp::Saved mlp;
  };

  void visit(const ParameterVisitor& visitor);

  // y from saved.x; y may be saved.x1 where no backward follows.
  void forward(const Step& step, TensorRef y, const Saved& saved, const LayerWorkspace& w) const;

  // What `recompute` left out of `saved`, from what is there.
  void recompute(const Step& step, Recompute recompute, const Saved& saved, const LayerWorkspace& w) const;

  // The gradients of what the four products give, full: all that weight gradients are made from, besides `saved`.
  // [batch, tokens, ..] as w.branch, w.wide, w.branch and [.., 3 hidden / size].
  struct ProductGradients {
    TensorRef mlp, up, attention, qkv;
  };
  // Places for them that a backward pass uses one after the other.
  ProductGradients in_workspace(const Step& step, const LayerWorkspace& w) const;

  // dx holds the gradient of y on entry and the gradient of saved.x on return. With step.weights_later, `gradients`
  // have places of their own, and they and `saved` go into weight_gradients() later.
  void backward(const Step& step, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                const ProductGradients& gradients) const;
  void weight_gradients(const Step& step, const Saved& saved, const LayerWorkspace& w,
                        const ProductGradients& gradients) const;

 private:
  // All before the MLP, whose input is left in w.normed.
  void forward_to_mlp(const Step& step, const Saved& saved, const LayerWorkspace& w) const;
  // [batch, tokens, 3 hidden / size] at the beginning of the MLP's wide one (4 hidden / size).
  TensorRef packed_projection(const Step& step, TensorRef wide) const {
    return {wide.data, wide.dtype, {step.batch, step.tokens, attention.qkv.weight.shape[0]}};
  }
  // The gradient that enters a branch, full: dropout's mask applied, or the residual stream's own where that is full,
  // nothing was dropped and nobody needs it later.
  TensorRef into_branch(const Step& step, TensorRef dx, const Dropout& dropout, TensorRef branch) const;
  Dropout dropout_after(const Step& step, int sublayer) const {
    return step.stream_dropout(hidden_dropout, RandomPurpose::kResidualDropout, 2 * index + sublayer);
  }
};

}  // namespace teratron
