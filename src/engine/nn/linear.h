// Linear layer y = x W^T + b and its mirror, on one rank or, split, on the ranks of a tensor-parallel group: column
// parallel cuts the outputs, row parallel the inputs (Megatron-LM section 3). Around a column-parallel layer and the
// row-parallel one that follows lie the paper's f (identity forward, all-reduce backward) and g (the reverse); under
// sequence parallelism they become an all-gather and a reduce-scatter (nn/layer_pass.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/adapter.h"
#include "nn/work.h"

namespace teratron {

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
    LayerAdapters adapters = {};
    bool follows_activation = false;  // x is the result of an activation
  };

  Parameter weight;               // [outputs, inputs], or this rank's part
  std::optional<Parameter> bias;  // [outputs], or this rank's part
  std::vector<Adapter> adapters;
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
    for (const LayerAdapters::Part& part : config.adapters.parts) {
      adapters.emplace_back(name, weight, part, config.adapters.config, group, config.of_all_tokens,
                            config.follows_activation);
    }
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
    for (Adapter& adapter : adapters) {
      visitor(adapter.a);
      visitor(adapter.b);
    }
  }

  // Adapters that take part in a forward pass.
  std::span<const Adapter> adapters_of(const LayerPass& pass) const {
    return pass.without_adapters ? std::span<const Adapter>() : adapters;
  }

  void add_to(Work& work) const {
    work.products.push_back({.inputs = weight.shape[1], .outputs = weight.shape[0]});
    for (const Adapter& adapter : adapters) {
      work.adapters.push_back({.inputs = adapter.inputs(), .outputs = adapter.a.shape[0]});
      work.adapters.push_back({.inputs = adapter.a.shape[0], .outputs = adapter.outputs()});
    }
  }

  LinearWeights weights() const { return {weight, bias ? &*bias : nullptr, of_all_tokens}; }
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const LinearEpilogue& epilogue = {}) const {
    forward_with(weights(), pass, y, x, epilogue);
  }
  void backward_input(const LayerPass& pass, TensorRef dx, TensorRef dy,
                      const LinearInputEpilogue& epilogue = {}) const {
    if (!adapters.empty() && weights().takes_low_ranks(pass) && !adapters.front().drops(pass)) {
      LinearInputEpilogue all = epilogue;
      for (std::size_t i = 0; i < adapters.size(); ++i) all.added[i] = adapters[i].input_addend(pass, dy);
      return weights().backward_input(pass, dx, dy, all);
    }
    if (epilogue.activation == Activation::kNone || adapters.empty()) {
      weights().backward_input(pass, dx, dy, epilogue);
      for (const Adapter& adapter : adapters) add(pass, dx, adapter.input_share(pass, dy).dx);
      return;
    }
    check(adapters.size() == 1, "a layer after an activation has one adapter");
    const Adapter::InputShare share = adapters.front().input_share(pass, dy, epilogue);
    weights().backward_input(pass, dx, dy, epilogue);
    add(pass, dx, share.dx);
    if (epilogue.dgate) add(pass, epilogue.dgate, share.dgate);
  }
  // Comes after backward_input() in the layer's backward or, with `alone`, in a pass of its own.
  void backward_weight(const LayerPass& pass, TensorRef dy, TensorRef x, bool alone = false) const {
    weights().backward_weight(pass, dy, x);
    for (const Adapter& adapter : adapters) adapter.backward_weight(pass, dy, x, alone);
  }

 protected:
  void forward_with(const LinearWeights& used, const LayerPass& pass, TensorRef y, TensorRef x,
                    const LinearEpilogue& epilogue) const {
    const std::span<const Adapter> beside = adapters_of(pass);
    if (beside.empty()) return used.forward(pass, y, x, epilogue);
    if (used.takes_low_ranks(pass)) {
      LinearEpilogue all = epilogue;
      for (std::size_t i = 0; i < beside.size(); ++i) all.added[i] = beside[i].addend(pass, x);
      return used.forward(pass, y, x, all);
    }
    // A gated result is linear in y, and adapters add to both; another activation waits for them.
    const bool waits = epilogue.activation != Activation::kNone && !epilogue.gate;
    used.forward(pass, y, x, waits ? LinearEpilogue{} : epilogue);
    for (const Adapter& adapter : beside) adapter.forward(pass, y, x, waits ? LinearEpilogue{} : epilogue);
    if (waits) {
      pass.backend.activation_forward({.y = epilogue.activated, .x = y, .activation = epilogue.activation});
    }
  }

 private:
  static void add(const LayerPass& pass, TensorRef to, TensorRef share) { pass.backend.add(to.flatten_rows(), share); }
};

// Outputs split: x is whole on every rank, y[T, outputs / size] is the rank's own.
struct ColumnParallelLinear : Linear {
  ColumnParallelLinear(const std::string& name, const Config& config, GroupRank group)
      : Linear(name, config, Parallel::kColumn, group) {}

  // f: dx[T, inputs] is summed over the ranks (under sequence parallelism only a rank's own rows are) while the weight
  // gradient is computed.
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

  // g: the ranks' shares of y are summed (into own rows under sequence parallelism); rank 0 adds the bias to its share.
  void forward(const LayerPass& pass, TensorRef y, TensorRef x) const {
    LinearWeights share = weights();
    if (pass.tensor.rank() != 0) share.bias = nullptr;
    forward_with(share, pass, y, x, {});
    pass.start_sum(y).wait();
  }
};

}  // namespace teratron
