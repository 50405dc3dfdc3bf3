// Linear layer y = x W^T + b and its mirror, on one rank or, split, on the ranks of a tensor-parallel group: column
// parallel cuts the outputs, row parallel the inputs (Megatron-LM section 3). Around a column-parallel layer and the
// row-parallel one that follows lie the paper's f (identity forward, all-reduce backward) and g (the reverse); under
// sequence parallelism they become an all-gather and a reduce-scatter (nn/layer_pass.h).
#pragma once

#include <string>

#include "nn/layer_pass.h"
#include "nn/parameter.h"

namespace teratron {

struct Linear {
  Parameter weight;            // [outputs, inputs], or this rank's part
  Parameter bias;              // [outputs]
  bool of_all_tokens = false;  // its rows are the tokens of the pass, of which the back end may leave out the padding

  enum class Parallel { kNone, kColumn, kRow };

  // Sizes are those of the whole layer. `blocks`: see Split.
  Linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, double init_scale,
         Parallel parallel = Parallel::kNone, GroupRank group = {}, std::int64_t blocks = 1)
      : weight{.name = name + ".weight",
               .shape = {parallel == Parallel::kColumn ? outputs / group.size : outputs,
                         parallel == Parallel::kRow ? inputs / group.size : inputs},
               .init = Init::kNormal,
               .init_scale = init_scale,
               .decay = true,
               .group = group},
        bias{.name = name + ".bias", .shape = {weight.shape[0]}, .group = group} {
    if (parallel == Parallel::kColumn) weight.split = bias.split = {.axis = 0, .blocks = blocks};
    if (parallel == Parallel::kRow) weight.split = {.axis = 1};
  }

  void visit(const ParameterVisitor& visitor) {
    visitor(weight);
    visitor(bias);
  }

  // y[T, outputs] from x[T, inputs]
  void forward(const LayerPass& pass, TensorRef y, TensorRef x) const {
    pass.backend.linear_forward({.y = y,
                                 .x = x,
                                 .weight = weight.value,
                                 .bias = bias.value,
                                 .rows_alone = pass.is_next_token(),
                                 .lengths = lengths(pass)});
  }

  // dx[T, inputs] from dy[T, outputs]
  void backward_input(const LayerPass& pass, TensorRef dx, TensorRef dy) const {
    pass.backend.linear_input_gradient({.dx = dx, .dy = dy, .weight = weight.value, .lengths = lengths(pass)});
  }

  // Does nothing where weights come later.
  void backward_weight(const LayerPass& pass, TensorRef dy, TensorRef x) const {
    if (pass.weights_later) return;
    pass.backend.linear_weight_gradient({.dweight = weight.gradient,
                                         .dy = dy,
                                         .x = x,
                                         .dbias = bias.gradient,
                                         .accumulate = pass.accumulate,
                                         .lengths = lengths(pass)});
  }

  TensorRef lengths(const LayerPass& pass) const { return of_all_tokens ? pass.key_lengths : TensorRef(); }
};

// Outputs split: x is whole on every rank, y[T, outputs / size] is the rank's own.
struct ColumnParallelLinear : Linear {
  ColumnParallelLinear(const std::string& name, std::int64_t inputs, std::int64_t outputs, GroupRank group,
                       std::int64_t blocks = 1)
      : Linear(name, inputs, outputs, 1.0, Parallel::kColumn, group, blocks) {}

  // f: dx[T, inputs] is summed over the ranks (own rows only are left of it under sequence parallelism) while the
  // weight gradient is computed.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x) const {
    backward_input(pass, dx, dy);
    Pending sum = pass.start_sum(dx);
    backward_weight(pass, dy, x);
    sum.wait();
  }
};

// Inputs split: x[T, inputs / size] is the rank's own, y is whole on every rank. Its gradient needs no exchange.
struct RowParallelLinear : Linear {
  RowParallelLinear(const std::string& name, std::int64_t inputs, std::int64_t outputs, double init_scale,
                    GroupRank group)
      : Linear(name, inputs, outputs, init_scale, Parallel::kRow, group) {}

  // g: the ranks' shares of y are summed (into own rows under sequence parallelism); the bias is in the first one's.
  void forward(const LayerPass& pass, TensorRef y, TensorRef x) const {
    const TensorRef share_of_bias = pass.tensor.rank() == 0 ? bias.value : TensorRef();
    pass.backend.linear_forward({.y = y,
                                 .x = x,
                                 .weight = weight.value,
                                 .bias = share_of_bias,
                                 .rows_alone = pass.is_next_token(),
                                 .lengths = lengths(pass)});
    pass.start_sum(y).wait();
  }
};

}  // namespace teratron
