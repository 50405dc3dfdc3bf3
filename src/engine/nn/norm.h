// Norm over the last axis: layer normalisation, or RMS normalisation, which has no mean and no bias (Zhang and
// Sennrich, arXiv 1910.07467). A layer that does not keep the normalised output makes it again in backward, from x and
// the statistics of each row, which costs one pass and saves [tokens, hidden].
#pragma once

#include <optional>
#include <string>

#include "nn/layer_pass.h"
#include "nn/parameter.h"

namespace teratron {

enum class NormKind { kLayer, kRms };

struct NormShape {
  NormKind kind = NormKind::kLayer;
  std::int64_t columns = 0;
  double epsilon = 1e-5;
};

struct Norm {
  Parameter gamma;                // [columns]
  std::optional<Parameter> beta;  // [columns]; of layer normalisation
  double epsilon;

  Norm(const std::string& name, const NormShape& shape, GroupRank group, GradientSum sum = GradientSum::kOverRows)
      : gamma{.name = name + ".weight", .shape = {shape.columns}, .init = Init::kOne, .group = group, .sum = sum},
        epsilon(shape.epsilon) {
    if (shape.kind == NormKind::kRms) return;
    beta = Parameter{.name = name + ".bias", .shape = {shape.columns}, .group = group, .sum = sum};
  }

  struct Saved {
    TensorRef mean, rstd;  // A [rows]; mean: of layer normalisation

    Saved rows(std::int64_t begin, std::int64_t end) const {
      return {.mean = mean ? mean.slice(0, begin, end) : TensorRef(), .rstd = rstd.slice(0, begin, end)};
    }
  };
  Saved carve(const CallSizes& sizes, std::int64_t rows, Carver& carver) const {
    Saved saved;
    if (beta) saved.mean = carver.take(sizes.accumulation, {rows});
    saved.rstd = carver.take(sizes.accumulation, {rows});
    return saved;
  }

  void visit(const ParameterVisitor& visitor) {
    visitor(gamma);
    if (beta) visitor(*beta);
  }

  NormForward call(TensorRef y, TensorRef x, const Saved& saved) const {
    return {.y = y,
            .mean = saved.mean,
            .rstd = saved.rstd,
            .x = x,
            .gamma = gamma.value,
            .beta = beta ? beta->value : TensorRef(),
            .epsilon = epsilon};
  }

  // y[.., columns] from x[.., columns]
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved) const {
    pass.backend.norm_forward(call(y, x, saved));
  }
  // Recomputes y from the saved statistics.
  void forward_again(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved) const {
    pass.backend.norm_apply(call(y, x, saved));
  }

  // Adds to dx, the gradient of the residual stream that x belongs to, or overwrites it.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved,
                bool accumulate_dx = true) const {
    pass.backend.norm_backward(gradient_call(pass, dx, dy, x, saved, accumulate_dx));
  }
  // backward(), and dbranch = dropout(dx): the gradient of the branch whose residual add made x.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved, bool accumulate_dx,
                TensorRef dbranch, const Dropout& dropout) const {
    pass.backend.residual_add_norm_backward({.norm = gradient_call(pass, dx, dy, x, saved, accumulate_dx),
                                             .add = {.dbranch = dbranch, .dsum = dx, .dropout = dropout}});
  }

 private:
  NormBackward gradient_call(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved,
                             bool accumulate_dx) const {
    return {.dx = dx,
            .dgamma = gamma.gradient,  // null: frozen
            .dbeta = beta ? beta->gradient : TensorRef(),
            .dy = dy,
            .x = x,
            .mean = saved.mean,
            .rstd = saved.rstd,
            .gamma = gamma.value,
            .accumulate_dx = accumulate_dx,
            .accumulate = pass.accumulate};
  }
};

}  // namespace teratron
