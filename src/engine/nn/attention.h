// Multi-head self-attention, causal (GPT-2) or of all tokens (BERT): one packed projection to queries, keys and values,
// attention by head, and the output projection. The packed projection doubles as the key/value cache: a call that
// starts at first_position sees the keys and values of every earlier position in `qkv`. Backward takes the slices of a
// sequence last to first, and each adds to `dkv` what it has to say about earlier keys and values (TeraPipe, arXiv
// 2102.07988, section 3).
#pragma once

#include <cmath>
#include <string>

#include "nn/linear.h"

namespace teratron {

struct Attention {
  ColumnParallelLinear qkv;      // [3 * heads * head_size, hidden]: queries, keys, values, each with whole heads
  RowParallelLinear projection;  // [hidden, heads * head_size]
  std::int64_t heads, first_head, all_heads, head_size, layer;  // heads [first_head, first_head + heads) are here
  double dropout;
  bool causal;  // a query sees the keys up to its own position; else those of the whole sequence

  Attention(const std::string& name, std::int64_t hidden, std::int64_t head_count, double residual_scale,
            double attention_dropout, bool is_causal, std::int64_t layer_index, GroupRank group)
      : qkv(name + ".qkv", hidden, 3 * hidden, group, 3),
        projection(name + ".projection", hidden, hidden, residual_scale, group),
        heads(head_count / group.size),
        first_head(group.rank * heads),
        all_heads(head_count),
        head_size(hidden / head_count),
        layer(layer_index),
        dropout(attention_dropout),
        causal(is_causal) {
    qkv.of_all_tokens = projection.of_all_tokens = true;
  }

  std::int64_t width() const { return heads * head_size; }  // of the queries here; keys and values have as much

  struct Saved {
    TensorRef qkv;          // [batch, sequence, 3 * width], width = heads * head_size
    TensorRef context;      // [batch, tokens, width]: what the projection reads
    TensorRef log_sum_exp;  // [batch, heads, tokens]
    TensorRef dkv;          // of a sequence in slices, backward: A [batch, sequence, 2 * width]; else null
  };

  void visit(const ParameterVisitor& visitor) {
    qkv.visit(visitor);
    projection.visit(visitor);
  }

  // y[batch, tokens, hidden] from x[batch, tokens, hidden]; `packed` is workspace [batch, tokens, 3 * width]. With
  // next tokens nothing is left for a backward.
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved, TensorRef packed) const {
    if (pass.is_next_token()) {
      qkv.forward(pass, packed, x);
      pass.backend.cached_attention(cached_call(pass, saved, packed));
      return projection.forward(pass, y, saved.context);
    }
    // A slice's rows lie side by side in the cache of one sequence, apart in that of several.
    const TensorRef own = saved.qkv.slice(1, pass.first_position, pass.first_position + pass.tokens);
    qkv.forward(pass, own.is_contiguous() ? own : packed, x);
    if (!own.is_contiguous()) pass.backend.copy(own, packed);
    pass.backend.attention_forward(call(pass, saved));
    projection.forward(pass, y, saved.context);
  }

  // context and log_sum_exp again, from qkv.
  void recompute_context(const LayerPass& pass, const Saved& saved) const {
    pass.backend.attention_forward(call(pass, saved));
  }

  // dx from dy. dcontext is workspace [batch, tokens, width], dqkv [batch, tokens, 3 * width].
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved, TensorRef dcontext,
                TensorRef dqkv) const {
    projection.backward_weight(pass, dy, saved.context);
    projection.backward_input(pass, dcontext, dy);
    backward_heads(pass, split(pass, dqkv), by_head(pass, dcontext), saved);
    qkv.backward(pass, dx, dqkv, x);
  }

  // Weight gradients that a backward with weights_later left out, from the same tensors.
  void weight_gradients(const LayerPass& pass, TensorRef dy, TensorRef dqkv, TensorRef x, const Saved& saved) const {
    projection.backward_weight(pass, dy, saved.context);
    qkv.backward_weight(pass, dqkv, x);
  }

 private:
  void backward_heads(const LayerPass& pass, TensorRef dqkv, TensorRef dout, const Saved& saved) const {
    const TensorRef dq = dqkv.select(2, 0), dk = dqkv.select(2, 1), dv = dqkv.select(2, 2);
    if (!saved.dkv) {
      pass.backend.attention_backward({.dq = dq, .dk = dk, .dv = dv, .dout = dout, .forward = call(pass, saved)});
      return;
    }
    // The last slice is the first to write. Sums stay in A until the slice that the keys belong to has added its own.
    const std::int64_t begin = pass.first_position, end = begin + pass.tokens;
    const TensorRef sums = saved.dkv.reshape({pass.batch, saved.dkv.dim(1), 2, heads, head_size});
    const TensorRef dkeys = sums.select(2, 0).slice(1, 0, end), dvalues = sums.select(2, 1).slice(1, 0, end);
    pass.backend.attention_backward({.dq = dq,
                                     .dk = dkeys,
                                     .dv = dvalues,
                                     .dout = dout,
                                     .forward = call(pass, saved),
                                     .accumulate_kv = end < pass.sequence_length});
    pass.backend.copy(dk, dkeys.slice(1, begin, end));
    pass.backend.copy(dv, dvalues.slice(1, begin, end));
  }
  // [batch, s, 3 * width] -> [batch, s, 3, heads, head_size]
  TensorRef split(const LayerPass& pass, TensorRef packed) const {
    return packed.reshape({pass.batch, packed.dim(1), 3, heads, head_size});
  }
  TensorRef by_head(const LayerPass& pass, TensorRef view) const {
    return view.reshape({pass.batch, pass.tokens, heads, head_size});
  }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(head_size)); }
  CachedAttention cached_call(const LayerPass& pass, const Saved& saved, TensorRef packed) const {
    const TensorRef parts = split(pass, packed), cache = split(pass, saved.qkv);
    return {.out = by_head(pass, saved.context),
            .q = parts.select(2, 0),
            .k = parts.select(2, 1),
            .v = parts.select(2, 2),
            .keys = cache.select(2, 1),
            .values = cache.select(2, 2),
            .lengths = pass.cache_lengths,
            .scale = scale()};
  }
  AttentionForward call(const LayerPass& pass, const Saved& saved) const {
    const std::int64_t end = pass.first_position + pass.tokens;
    const TensorRef parts = split(pass, saved.qkv);
    AttentionForward args{.out = by_head(pass, saved.context),
                          .log_sum_exp = saved.log_sum_exp,
                          .q = parts.select(2, 0).slice(1, pass.first_position, end),
                          .k = parts.select(2, 1).slice(1, 0, end),
                          .v = parts.select(2, 2).slice(1, 0, end),
                          .lengths = pass.key_lengths,
                          .first_keys = pass.first_keys,
                          .causal = causal,
                          .scale = scale(),
                          .dropout = pass.dropout(dropout, RandomPurpose::kAttentionDropout, layer)};
    args.dropout.heads = all_heads;
    args.dropout.first_head = first_head;
    return args;
  }
};

}  // namespace teratron
