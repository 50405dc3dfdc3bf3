// One transformer layer, forward and its mirror. Layer norms stand where the configuration says:
//   pre  (GPT-2; Figure 7b of the Megatron-LM paper)         x1 = x + dropout(attention(LN1(x)))
//                                                            y  = x1 + dropout(mlp(LN2(x1)))
//   post (original BERT; Figure 7a)                          x1 = LN1(x + dropout(attention(x)))
//                                                            y  = LN2(x1 + dropout(mlp(x1)))
//   parallel (GPT-J, GPT-NeoX)                               x1 = x + dropout(attention(LN1(x)))
//                                                            y  = x1 + dropout(mlp(LN2(x)))
// LN is a layer norm or an RMS norm. transformer_layer_passes.cc has the passes of all three.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace teratron {

enum class NormPlacement { kPre, kPost, kParallel };

// A layer's shape and function.
struct TransformerLayerConfig {
  std::int64_t hidden_size = 0, num_attention_heads = 0, ffn_hidden_size = 0;
  std::int64_t num_key_value_heads = 0, head_size = 0;
  std::int64_t num_layers = 1;  // of the model
  NormKind norm = NormKind::kLayer;
  double layernorm_epsilon = 1e-5, hidden_dropout = 0, attention_dropout = 0;
  Activation activation = Activation::kGeluTanh;
  NormPlacement norm_placement = NormPlacement::kPre;
  bool causal = true;
  bool scaled_init = true;  // weights before a residual add start smaller, by 1/sqrt(2 num_layers)
  bool gated = false;       // the MLP
  bool bias = true;         // of linear layers, but for queries, keys and values
  bool qkv_bias = true;
  bool head_norms = false;  // RMS norms of queries and keys
  std::int64_t window = 0;  // keys that a token sees at most; 0: all
  RotaryConfig rotary = {};
  AdapterConfig adapters = {};

  bool operator==(const TransformerLayerConfig&) const = default;
};

// Activations that backward computes again instead of keeping them (Korthikanti et al., arXiv 2205.05198): selective,
// each head's attention; full, all of a layer but its input. The bits are the same.
enum class Recompute { kNone, kSelective, kFull };

// How a layer keeps its activations from forward to backward.
struct KeptActivations {
  Recompute recompute = Recompute::kNone;
  bool has_cache = false;  // the projections lie in memory that the calls of a sequence share
  // Without recompute: results of norms and of the MLP's activation are kept, too, which backward else makes again in a
  // pass over memory each. The bits are the same, but for rounding in a GPU's fused GELU (LinearForward::activated).
  bool cheap_ones = false;
};

// Written by every layer in turn, alive only within one call. [batch, tokens, ..]
struct LayerWorkspace {
  TensorRef normed;   // [.., hidden]: a sub-layer's input where it is not kept
  TensorRef branch;   // [.., hidden]: the sub-layer's output, and its gradient
  TensorRef dnormed;  // [.., hidden], training only
  TensorRef wide;     // [.., wide_columns()]: the MLP's activation; in backward dffn, then those of projections
  TensorRef heads;    // [.., head_columns()]: queries or keys on their way through norms
};

struct TransformerLayer {
  Norm norm1;
  Attention attention;
  Norm norm2;
  Mlp mlp;
  double hidden_dropout;
  NormPlacement norm_placement;
  std::int64_t index;

  TransformerLayer(const TransformerLayerConfig& config, std::int64_t layer, GroupRank group);

  void visit(const ParameterVisitor& visitor);

  std::int64_t hidden_size() const { return norm1.gamma.shape[0]; }
  std::int64_t wide_columns() const { return std::max(mlp.columns(), attention.projected_columns()); }
  std::int64_t head_columns() const { return attention.head_columns(); }

  // Activations kept from forward to backward. "stream" is the residual stream's shape (LayerPass::stream_shape).
  struct Saved {
    TensorRef x;  // stream: the layer's input
    Attention::Saved attention;
    TensorRef sum1;  // stream: x plus the attention; with pre-norm x1, with post-norm the first norm's input
    Norm::Saved norm1, norm2;
    Mlp::Saved mlp;
    TensorRef sum2;  // stream: input of the second norm of post-norm; else null
    // [batch, tokens, hidden]: results of the norms that a sub-layer reads, where they are kept, else null. Ranks that
    // share out the residual stream gather them again.
    TensorRef normed1, normed2;
  };
  // The tensors of Saved but x, cut off `kept`, or off `again` where recompute makes them again. The projections are
  // left out where there is a cache.
  Saved carve(const CallSizes& sizes, const KeptActivations& keeping, Carver& kept, Carver& again) const;

  // Memory that the layer's adapters share, as LayerPass::adapters; 0: it has none.
  std::int64_t adapter_bytes(const CallSizes& sizes) const;
  std::int64_t adapter_rank() const;  // of those that it has; 0: none

  // Products, attention and passes over memory of a row on this rank.
  Work work() const;

  // Layers that begin with a norm and follow each other: each norms its output for the next one, in the pass over
  // memory that adds the residual.
  struct Chain {
    bool is_normed = false;      // the layer before has computed this layer's first norm
    const Norm* next = nullptr;  // first norm of the layer after; null: none follows here
    Norm::Saved next_saved = {};
    TensorRef next_normed = {};  // the next layer's Saved::normed1
  };
  // Null: the layer does not begin with one.
  const Norm* first_norm() const { return norm_placement == NormPlacement::kPost ? nullptr : &norm1; }

  // y from saved.x. Where no backward follows, y may be saved.sum1 with pre-norm.
  void forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
               const Chain& chain) const;

  // Name of the first operation, in the order of forward(), that has a result for which is_wanted() is true. Results
  // are those that are still in memory when forward() returns. Empty: none.
  std::string first_result(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
                           const std::function<bool(TensorRef)>& is_wanted) const;

  // Computes the activations again that `recompute` left out of `saved`.
  void recompute(const LayerPass& pass, Recompute recompute, const Saved& saved, const LayerWorkspace& w) const;

  // Gradients of the products' outputs, of all rows; weight gradients are made from these and `saved`. [batch, tokens,
  // ..] of hidden, the MLP's columns, hidden, and the outputs of the projections. Null where there is no product.
  struct ProductGradients {
    TensorRef mlp, up, attention, qkv, key_value;
  };
  ProductGradients carve_gradients(const CallSizes& sizes, Carver& carver) const;
  // Product gradients in the workspace, where they share memory: a backward pass uses one after the other.
  ProductGradients in_workspace(const LayerPass& pass, const LayerWorkspace& w) const;

  // Layers that begin with a norm, from the last to the first: each writes the gradient that enters the MLP of the
  // layer before, in the pass over memory that makes its own dx.
  struct BackwardChain {
    bool has_branch = false;                   // the layer after has written this one's ProductGradients::mlp
    const TransformerLayer* before = nullptr;  // null: none follows here
    TensorRef before_mlp = {};                 // its ProductGradients::mlp
  };
  // Whether the layer after may write the gradient that enters this layer's MLP (BackwardChain::has_branch): it differs
  // from the gradient of y, and has memory of its own.
  bool takes_branch(const LayerPass& pass) const {
    return norm_placement != NormPlacement::kPost && !pass.weights_later &&
           has_own_branch(pass, dropout_after(pass, 1));
  }

  // dx holds the gradient of y on entry and the gradient of saved.x on return. With pass.weights_later, `gradients`
  // have places of their own, and they and `saved` go into weight_gradients() later.
  void backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                const ProductGradients& gradients, const BackwardChain& chain) const;
  void weight_gradients(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w,
                        const ProductGradients& gradients) const;

 private:
  template <class Self, class Use>
  static void for_each_adapter(Self& self, const Use& use);

  // The MLP's norm reads the sum after attention, and not the layer's input.
  bool is_sequential() const { return norm_placement != NormPlacement::kParallel; }

  void pre_forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w,
                   const Chain& chain) const;
  TensorRef pre_forward_to_mlp(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w,
                               bool is_normed) const;
  void pre_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                    const ProductGradients& gradients, const BackwardChain& chain) const;

  void post_forward(const LayerPass& pass, TensorRef y, const Saved& saved, const LayerWorkspace& w) const;
  TensorRef post_forward_to_mlp(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w) const;
  void post_backward(const LayerPass& pass, TensorRef dx, const Saved& saved, const LayerWorkspace& w,
                     const ProductGradients& gradients) const;
  TensorRef post_norm_backward(const LayerPass& pass, const Norm& norm, TensorRef dx, TensorRef sum,
                               const Norm::Saved& saved, const LayerWorkspace& w, const Dropout& dropout,
                               TensorRef branch) const;

  // Gradients of the sub-layers' inputs, in w.dnormed, from those of their outputs.
  void mlp_backward(const LayerPass& pass, TensorRef dmlp, const Saved& saved, const LayerWorkspace& w,
                    const ProductGradients& gradients) const;
  void attention_backward(const LayerPass& pass, TensorRef dattention, const Saved& saved, const LayerWorkspace& w,
                          const ProductGradients& gradients) const;

  // Place of a norm's result that a sub-layer reads, full [batch, tokens, hidden].
  static TensorRef place_of(TensorRef kept, const LayerWorkspace& w) { return kept ? kept : w.normed; }
  // Inputs of the two sub-layers in backward, full; computed again in w.normed where they are not kept whole.
  TensorRef attention_input(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w) const;
  TensorRef mlp_input(const LayerPass& pass, const Saved& saved, const LayerWorkspace& w) const;

  // The projections' results or their gradients, at the beginning of w.wide.
  Attention::Workspace in_wide(const LayerPass& pass, const LayerWorkspace& w) const;
  // A view [batch, tokens, the MLP's columns] at the beginning of `wide`.
  TensorRef activated(const LayerPass& pass, TensorRef wide) const {
    return {wide.data, wide.dtype, {pass.batch, pass.tokens, mlp.columns()}};
  }
  // Returns the gradient that enters a branch, of all rows: that of the residual stream with dropout's mask applied, in
  // `branch`; or dx itself where it has all rows, nothing was dropped, and nothing reads the gradient later.
  TensorRef into_branch(const LayerPass& pass, TensorRef dx, const Dropout& dropout, TensorRef branch) const;
  // Whether into_branch() writes to `branch`.
  static bool has_own_branch(const LayerPass& pass, const Dropout& dropout) {
    return dropout.active() || pass.sequence_parallel || pass.weights_later;
  }
  // Views of a norm's backward pass.
  struct NormGradient {
    TensorRef dx, dy, x;
    const Norm::Saved& saved;
    bool accumulate_dx = true;
  };
  // The norm's backward pass and into_branch() of its dx, in one pass over memory where the latter writes to `branch`.
  TensorRef norm_into_branch(const LayerPass& pass, const Norm& norm, const NormGradient& call, const Dropout& dropout,
                             TensorRef branch) const;
  Dropout dropout_after(const LayerPass& pass, int sublayer) const {
    return pass.stream_dropout(hidden_dropout, RandomPurpose::kResidualDropout, 2 * index + sublayer);
  }
};

}  // namespace teratron
