// Layer normalisation over the hidden axis. The normalised output is not kept: backward makes it again from x and the
// two statistics of each row, which costs one pass and saves [tokens, hidden] per norm.
#pragma once

#include <string>

#include "nn/layer_pass.h"
#include "nn/parameter.h"

namespace teratron {

struct LayerNorm {
  Parameter gamma, beta;  // [hidden]
  double epsilon;

  LayerNorm(const std::string& name, std::int64_t hidden, double eps, GroupRank group)
      : gamma{.name = name + ".weight", .shape = {hidden}, .init = Init::kOne, .group = group, .sums_over_rows = true},
        beta{.name = name + ".bias", .shape = {hidden}, .group = group, .sums_over_rows = true},
        epsilon(eps) {}

  struct Saved {
    TensorRef mean, rstd;  // [T]
  };

  void visit(const ParameterVisitor& visitor) {
    visitor(gamma);
    visitor(beta);
  }

  LayerNormForward call(TensorRef y, TensorRef x, const Saved& saved) const {
    return {.y = y,
            .mean = saved.mean,
            .rstd = saved.rstd,
            .x = x,
            .gamma = gamma.value,
            .beta = beta.value,
            .epsilon = epsilon};
  }

  // y[.., hidden] from x[.., hidden]
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved) const {
    pass.backend.layer_norm_forward(call(y, x, saved));
  }
  void forward_again(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved) const {
    pass.backend.layer_norm_apply(call(y, x, saved));
  }

  // Adds to dx, the gradient of the residual stream that x belongs to, or overwrites it.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved,
                bool accumulate_dx = true) const {
    pass.backend.layer_norm_backward({.dx = dx,
                                      .dgamma = gamma.gradient,
                                      .dbeta = beta.gradient,
                                      .dy = dy,
                                      .x = x,
                                      .mean = saved.mean,
                                      .rstd = saved.rstd,
                                      .gamma = gamma.value,
                                      .accumulate_dx = accumulate_dx,
                                      .accumulate = pass.accumulate});
  }
};

}  // namespace teratron
