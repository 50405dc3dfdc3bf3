// The feed-forward block: hidden -> 4 hidden, GeLU, back to hidden. Only the pre-activation is kept; the activation is
// made again in the backward pass, inside the product that needs its derivative anyway.
#pragma once

#include <string>

#include "nn/linear.h"

namespace teratron {

struct Mlp {
  ColumnParallelLinear up;  // [ffn, hidden]
  RowParallelLinear down;   // [hidden, ffn]
  Activation activation;

  Mlp(const std::string& name, std::int64_t hidden, std::int64_t ffn, double residual_scale, Activation gelu,
      GroupRank group)
      : up(name + ".up", hidden, ffn, group),
        down(name + ".down", ffn, hidden, residual_scale, group),
        activation(gelu) {
    up.of_all_tokens = down.of_all_tokens = true;
  }

  struct Saved {
    TensorRef pre_activation;  // [batch, tokens, ffn / size], as all that is ffn wide
  };

  void visit(const ParameterVisitor& visitor) {
    up.visit(visitor);
    down.visit(visitor);
  }

  // y[.., hidden] from x[.., hidden]; `activated` is workspace [.., ffn].
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved, TensorRef activated) const {
    pass.backend.linear_forward({.y = saved.pre_activation,
                                 .x = x,
                                 .weight = up.weight.value,
                                 .bias = up.bias.value,
                                 .activation = activation,
                                 .activated = activated,
                                 .rows_alone = pass.is_next_token(),
                                 .lengths = up.lengths(pass)});
    down.forward(pass, y, activated);
  }

  // dx from dy; dffn is workspace [.., ffn]. The activation overwrites the pre-activation, which nothing needs after.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved,
                TensorRef dffn) const {
    const TensorRef activated = saved.pre_activation;
    pass.backend.linear_input_gradient({.dx = dffn,
                                        .dy = dy,
                                        .weight = down.weight.value,
                                        .activation = activation,
                                        .pre_activation = saved.pre_activation,
                                        .activated = activated,
                                        .lengths = down.lengths(pass)});
    down.backward_weight(pass, dy, activated);
    up.backward(pass, dx, dffn, x);
  }

  // Weight gradients that a backward with weights_later left out, from the same tensors.
  void weight_gradients(const LayerPass& pass, TensorRef dy, TensorRef dffn, TensorRef x, const Saved& saved) const {
    down.backward_weight(pass, dy, saved.pre_activation);
    up.backward_weight(pass, dffn, x);
  }
};

}  // namespace teratron
