// Multi-head causal self-attention (GPT-2): one packed projection to queries, keys and values, attention by head, and
// the output projection. The packed projection doubles as the key/value cache: a call that starts at first_position
// sees the keys and values of every earlier position in `qkv`.
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

  Attention(const std::string& name, std::int64_t hidden, std::int64_t head_count, double residual_scale,
            double attention_dropout, std::int64_t layer_index, const std::string& hugging_face, TensorPlace place)
      : qkv(name + ".qkv", hidden, 3 * hidden, hugging_face + ".c_attn", place, 3),
        projection(name + ".projection", hidden, hidden, residual_scale, hugging_face + ".c_proj", place),
        heads(head_count / place.size),
        first_head(place.rank * heads),
        all_heads(head_count),
        head_size(hidden / head_count),
        layer(layer_index),
        dropout(attention_dropout) {}

  struct Saved {
    TensorRef qkv;          // [batch, sequence, 3 * width], width = heads * head_size
    TensorRef context;      // [batch, tokens, width]: what the projection reads
    TensorRef log_sum_exp;  // [batch, heads, tokens]
  };

  void visit(const ParameterVisitor& visitor) {
    qkv.visit(visitor);
    projection.visit(visitor);
  }

  // y[batch, tokens, hidden] from x[batch, tokens, hidden]
  void forward(const Step& step, TensorRef y, TensorRef x, const Saved& saved) const {
    // A slice that starts past 0 is written behind the cache's earlier rows; contiguous for one sequence.
    qkv.forward(step, saved.qkv.slice(1, step.first_position, step.first_position + step.tokens), x);
    step.backend.attention_forward(call(step, saved));
    projection.forward(step, y, saved.context);
  }

  // context and log_sum_exp again, from qkv.
  void recompute_context(const Step& step, const Saved& saved) const {
    step.backend.attention_forward(call(step, saved));
  }

  // dx from dy. dcontext is workspace [batch, tokens, width], dqkv [batch, tokens, 3 * width].
  void backward(const Step& step, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved, TensorRef dcontext,
                TensorRef dqkv) const {
    projection.backward_weight(step, dy, saved.context);
    projection.backward_input(step, dcontext, dy);
    const TensorRef parts = split(step, dqkv);
    step.backend.attention_backward({.dq = parts.select(2, 0),
                                     .dk = parts.select(2, 1),
                                     .dv = parts.select(2, 2),
                                     .dout = by_head(step, dcontext),
                                     .forward = call(step, saved)});
    qkv.backward(step, dx, dqkv, x);
  }

 private:
  // [batch, s, 3 * width] -> [batch, s, 3, heads, head_size]
  TensorRef split(const Step& step, TensorRef packed) const {
    return packed.reshape({step.batch, packed.dim(1), 3, heads, head_size});
  }
  TensorRef by_head(const Step& step, TensorRef view) const {
    return view.reshape({step.batch, step.tokens, heads, head_size});
  }
  AttentionForward call(const Step& step, const Saved& saved) const {
    const std::int64_t end = step.first_position + step.tokens;
    const TensorRef parts = split(step, saved.qkv);
    AttentionForward args{.out = by_head(step, saved.context),
                          .log_sum_exp = saved.log_sum_exp,
                          .q = parts.select(2, 0).slice(1, step.first_position, end),
                          .k = parts.select(2, 1).slice(1, 0, end),
                          .v = parts.select(2, 2).slice(1, 0, end),
                          .scale = 1.0 / std::sqrt(static_cast<double>(head_size)),
                          .dropout = step.dropout(dropout, RandomPurpose::kAttentionDropout, layer)};
    args.dropout.heads = all_heads;
    args.dropout.first_head = first_head;
    return args;
  }
};

}  // namespace teratron
