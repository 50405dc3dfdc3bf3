// Linear layer y = x W^T + b and its mirror, on one rank or, split, on the ranks of a tensor-parallel group: column
// parallel cuts the outputs, row parallel the inputs (Megatron-LM section 3). Around a column-parallel layer and the
// row-parallel one that follows lie the paper's f (identity forward, all-reduce backward) and g (the reverse); under
// sequence parallelism they become an all-gather and a reduce-scatter (nn/layer_pass.h).
#pragma once

#include <optional>
#include <string>

#include "nn/layer_pass.h"
#include "nn/parameter.h"

namespace teratron {

// Steps that follow a product in its own pass: after its result (LinearForward), and after the gradient of its input
// (LinearInputGradient).
struct LinearEpilogue {
  Activation activation = Activation::kNone;
  TensorRef activated, gate;
  bool rows_alone = false;
};
struct LinearInputEpilogue {
  Activation activation = Activation::kNone;
  TensorRef pre_activation, activated, gate, dgate;
};

// A weight matrix and its bias, wherever they are declared. All products with weights go through here.
struct LinearWeights {
  const Parameter& weight;          // [outputs, inputs]
  const Parameter* bias = nullptr;  // [outputs], optional
  bool of_all_tokens = false;  // the rows are the tokens of the pass, of which a back end may leave out the padding

  // y[T, outputs] from x[T, inputs]
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const LinearEpilogue& epilogue = {}) const {
    const LinearForward product{.y = y,
                                .x = x,
                                .weight = weight.value,
                                .bias = bias == nullptr ? TensorRef() : bias->value,
                                .activation = epilogue.activation,
                                .activated = epilogue.activated,
                                .gate = epilogue.gate,
                                .rows_alone = pass.is_next_token() || epilogue.rows_alone,
                                .lengths = lengths(pass)};
    if (is_tiles(weight.value.dtype)) return pass.backend.tile_linear_forward({product});
    pass.backend.linear_forward(product);
  }

  // dx[T, inputs] from dy[T, outputs]
  void backward_input(const LayerPass& pass, TensorRef dx, TensorRef dy,
                      const LinearInputEpilogue& epilogue = {}) const {
    pass.backend.linear_input_gradient({.dx = dx,
                                        .dy = dy,
                                        .weight = weight.value,
                                        .activation = epilogue.activation,
                                        .pre_activation = epilogue.pre_activation,
                                        .activated = epilogue.activated,
                                        .gate = epilogue.gate,
                                        .dgate = epilogue.dgate,
                                        .lengths = lengths(pass)});
  }

  // Does nothing where weights come later.
  void backward_weight(const LayerPass& pass, TensorRef dy, TensorRef x) const {
    if (pass.weights_later) return;
    pass.backend.linear_weight_gradient({.dweight = weight.gradient,
                                         .dy = dy,
                                         .x = x,
                                         .dbias = bias == nullptr ? TensorRef() : bias->gradient,
                                         .accumulate = pass.accumulate,
                                         .lengths = lengths(pass)});
  }

 private:
  TensorRef lengths(const LayerPass& pass) const { return of_all_tokens ? pass.key_lengths : TensorRef(); }
};

struct Linear {
  enum class Parallel { kNone, kColumn, kRow };

  // Sizes are those of the whole layer.
  struct Config {
    std::int64_t inputs = 0, outputs = 0;
    bool bias = true;
    double init_scale = 1.0;
    std::int64_t blocks = 1;     // Split::blocks
    bool of_all_tokens = false;  // LinearWeights::of_all_tokens
    int replicas = 1;            // Parameter::replicas, of column-parallel layers
  };

  Parameter weight;               // [outputs, inputs], or this rank's part
  std::optional<Parameter> bias;  // [outputs], or this rank's part
  bool of_all_tokens;

  Linear(const std::string& name, const Config& config, Parallel parallel = Parallel::kNone, GroupRank group = {})
      : of_all_tokens(config.of_all_tokens) {
    const GroupRank parts{group.rank / config.replicas, group.size / config.replicas};
    const Parameter common{.group = parts, .replicas = config.replicas, .replica = group.rank % config.replicas};
    weight = common;
    weight.name = name + ".weight";
    weight.shape = {parallel == Parallel::kColumn ? config.outputs / parts.size : config.outputs,
                    parallel == Parallel::kRow ? config.inputs / parts.size : config.inputs};
    weight.init = Init::kNormal;
    weight.init_scale = config.init_scale;
    weight.takes_tiles = true;
    weight.decay = true;
    if (parallel == Parallel::kColumn) weight.split = {.axis = 0, .blocks = config.blocks};
    if (parallel == Parallel::kRow) weight.split = {.axis = 1};
    if (!config.bias) return;
    bias = common;
    bias->name = name + ".bias";
    bias->shape = {weight.shape[0]};
    if (parallel == Parallel::kColumn) bias->split = weight.split;
  }

  std::int64_t outputs() const { return weight.shape[0]; }  // on this rank

  void visit(const ParameterVisitor& visitor) {
    visitor(weight);
    if (bias) visitor(*bias);
  }

  LinearWeights weights() const { return {weight, bias ? &*bias : nullptr, of_all_tokens}; }
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const LinearEpilogue& epilogue = {}) const {
    weights().forward(pass, y, x, epilogue);
  }
  void backward_input(const LayerPass& pass, TensorRef dx, TensorRef dy,
                      const LinearInputEpilogue& epilogue = {}) const {
    weights().backward_input(pass, dx, dy, epilogue);
  }
  void backward_weight(const LayerPass& pass, TensorRef dy, TensorRef x) const {
    weights().backward_weight(pass, dy, x);
  }
};

// Outputs split: x is whole on every rank, y[T, outputs / size] is the rank's own.
struct ColumnParallelLinear : Linear {
  ColumnParallelLinear(const std::string& name, const Config& config, GroupRank group)
      : Linear(name, config, Parallel::kColumn, group) {}

  // f: dx[T, inputs] is summed over the ranks (own rows only are left of it under sequence parallelism) while the
  // weight gradient is computed.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x) const {
    backward_input(pass, dx, dy);
    Pending sum = pass.start_sum(dx);
    backward_weight(pass, dy, x);
    sum.wait();
  }

  // The mirror of this layer and of another one of the same x: dx is the sum of both. `share` is workspace [T, inputs].
  void backward_with(const ColumnParallelLinear& other, const LayerPass& pass, TensorRef dx, TensorRef dy,
                     TensorRef dother, TensorRef x, TensorRef share) const {
    backward_input(pass, dx, dy);
    other.backward_input(pass, share, dother);
    pass.backend.add(dx, share);
    Pending sum = pass.start_sum(dx);
    backward_weight(pass, dy, x);
    other.backward_weight(pass, dother, x);
    sum.wait();
  }
};

// Inputs split: x[T, inputs / size] is the rank's own, y is whole on every rank. Its gradient needs no exchange.
struct RowParallelLinear : Linear {
  RowParallelLinear(const std::string& name, const Config& config, GroupRank group)
      : Linear(name, config, Parallel::kRow, group) {}

  // g: the ranks' shares of y are summed (into own rows under sequence parallelism); the bias is in the first one's.
  void forward(const LayerPass& pass, TensorRef y, TensorRef x) const {
    LinearWeights share = weights();
    if (pass.tensor.rank() != 0) share.bias = nullptr;
    share.forward(pass, y, x);
    pass.start_sum(y).wait();
  }
};

}  // namespace teratron
