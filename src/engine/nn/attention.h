// Multi-head self-attention, causal or of all tokens: projections to queries, keys and values, attention by head, and
// the output projection. Several query heads may share a key head and its values (Ainslie et al., arXiv 2305.13245).
//
// The projections of a whole sequence lie side by side, so that a call that starts at first_position sees the keys and
// values of every earlier position. Backward takes the slices of a sequence last to first, and each adds to `dkv` its
// share of the gradients of earlier keys and values (TeraPipe, arXiv 2102.07988, section 3). Generation keeps a cache
// of keys and values alone.
#pragma once

#include <optional>
#include <string>

#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rotary.h"
#include "nn/work.h"

namespace teratron {

struct AttentionConfig {
  std::int64_t hidden_size = 0, heads = 0, key_heads = 0, head_size = 0;  // of the whole layer
  double residual_scale = 1, dropout = 0;
  bool causal = true;                       // a query sees the keys up to its own position; else those of the sequence
  std::int64_t window = 0;                  // causal: keys seen at most, which passes give as first_keys; 0: all
  bool bias = true, output_bias = true;     // of queries, keys and values; of the output projection
  std::optional<NormShape> head_norm = {};  // of queries and of keys, head by head, before positions
  RotaryConfig rotary = {};
  AdapterConfig adapters = {};
};

struct Attention {
  // With as many key heads as heads, qkv is [3 * heads * head_size, hidden]: queries, keys, values, each of whole
  // heads. Else it has the queries alone, and key_value [2 * key_heads * head_size, hidden] has keys and values; where
  // there are more ranks than key heads, those that share one hold it as replicas.
  ColumnParallelLinear qkv;
  std::optional<ColumnParallelLinear> key_value;
  std::optional<Norm> query_norm, key_norm;
  RowParallelLinear projection;                          // [hidden, heads * head_size]
  std::int64_t heads, key_heads, first_head, all_heads;  // heads [first_head, first_head + heads) are here
  std::int64_t head_size, layer, window;
  double dropout;
  bool causal;
  RotaryConfig rotary;

  Attention(const std::string& name, const AttentionConfig& config, std::int64_t layer_index, GroupRank group);

  std::int64_t width() const { return heads * head_size; }          // of the queries here
  std::int64_t key_width() const { return key_heads * head_size; }  // of the keys here, and of the values
  std::int64_t projected_columns() const { return width() + 2 * key_width(); }
  std::int64_t head_columns() const { return query_norm ? width() : 0; }  // of Workspace::heads

  struct Saved {
    // [batch, sequence, outputs]: the results of the projections, normed and rotated. Null in generation; key_value
    // also where there is no such layer.
    TensorRef qkv, key_value;
    TensorRef cache;          // of generation: [batch, cache tokens, 2 * key_width]: keys, values
    TensorRef queries, keys;  // before their norms: [batch, tokens, heads, head_size], the keys of key_heads
    Norm::Saved query_norm, key_norm;
    TensorRef context;      // [batch, tokens, width]: what the projection reads
    TensorRef log_sum_exp;  // [batch, heads, tokens]
    TensorRef dkv;          // of a sequence in slices, backward: A [batch, sequence, 2 * key_width]; else null
  };
  // Takes context and log_sum_exp from `scores`, the rest from `projected`. With has_cache, qkv and key_value lie in
  // memory that the calls of a sequence share.
  void carve(const CallSizes& sizes, bool has_cache, Carver& projected, Carver& scores, Saved& saved) const;

  // Written by a call, alive only within it. The first two are the call's projections, in backward their gradients.
  struct Workspace {
    TensorRef qkv, key_value;  // [batch, tokens, outputs]
    TensorRef heads;           // [batch, tokens, head_columns]
    TensorRef share;           // [batch, tokens, hidden]; backward
    TensorRef dcontext;        // [batch, tokens, width]; backward
  };

  void visit(const ParameterVisitor& visitor);
  // `self`: a layer, const or not.
  template <class Self, class Visit>
  static void for_each_linear(Self& self, const Visit& visit_linear) {
    visit_linear(self.qkv);
    if (self.key_value) visit_linear(*self.key_value);
    visit_linear(self.projection);
  }
  void add_to(Work& work) const;

  // y[batch, tokens, hidden] from x[batch, tokens, hidden]. In generation nothing is left for a backward.
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved, const Workspace& w) const;
  // Recomputes context and log_sum_exp from the projections.
  void recompute_context(const LayerPass& pass, const Saved& saved) const;

  // dx from dy.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved,
                const Workspace& w) const;
  // Weight gradients that a backward with weights_later left out, from the same tensors.
  void weight_gradients(const LayerPass& pass, TensorRef dy, TensorRef dqkv, TensorRef dkey_value, TensorRef x,
                        const Saved& saved) const;

 private:
  // Views by head: [batch, tokens, heads, head_size], keys and values of key_heads.
  struct Heads {
    TensorRef q, k, v;
  };
  Heads by_head(const LayerPass& pass, TensorRef qkv, TensorRef key_value) const;
  // Keys and values of the sequences from position 0 to the call's last token.
  Heads seen(const LayerPass& pass, const Saved& saved) const;
  // Keys (number 0) or values (1) of a tensor [batch, tokens, 2 * key_width].
  TensorRef part(TensorRef keys_and_values, int number) const;

  void position(const LayerPass& pass, const Heads& own, const Saved& saved, const Workspace& w) const;
  void position_backward(const LayerPass& pass, const Heads& gradients, const Saved& saved, const Workspace& w) const;
  void rotate(const LayerPass& pass, TensorRef heads, bool inverse) const;
  void backward_heads(const LayerPass& pass, const Heads& gradients, TensorRef dout, const Saved& saved) const;
  void attend(const LayerPass& pass, const Heads& own, const Saved& saved) const;
  AttentionForward call(const LayerPass& pass, const Heads& heads, const Saved& saved) const;
  double scale() const;
};

}  // namespace teratron
