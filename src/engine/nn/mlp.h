// The feed-forward block: hidden -> ffn, an activation, back to hidden; or gated (Shazeer, arXiv 2002.05202): two
// products with the input, the activation of one times the other. The results of the products are kept. The activation
// is kept, too, or is computed again in the backward pass, inside the product that needs its derivative anyway.
#pragma once

#include <optional>
#include <string>

#include "nn/linear.h"
#include "nn/work.h"

namespace teratron {

// Width of the block where a model does not say it (GPT-2, BERT).
constexpr std::int64_t usual_ffn_size(std::int64_t hidden_size) { return 4 * hidden_size; }

struct MlpConfig {
  std::int64_t hidden_size = 0, ffn_hidden_size = 0;
  Activation activation = Activation::kGeluTanh;
  bool gated = false, bias = true;
  double residual_scale = 1;
  AdapterConfig adapters = {};
};

struct Mlp {
  std::optional<ColumnParallelLinear> gate;  // [ffn, hidden]
  ColumnParallelLinear up;                   // [ffn, hidden]
  RowParallelLinear down;                    // [hidden, ffn]
  Activation activation;

  Mlp(const std::string& name, const MlpConfig& config, GroupRank group)
      : up(name + ".up", into(config, AdapterConfig::kUp), group),
        down(name + ".down",
             {.inputs = config.ffn_hidden_size,
              .outputs = config.hidden_size,
              .bias = config.bias,
              .init_scale = config.residual_scale,
              .of_all_tokens = true,
              .adapters = LayerAdapters::of(config.adapters, {{AdapterConfig::kDown, ""}}),
              .follows_activation = true},
             group),
        activation(config.activation) {
    if (config.gated) gate.emplace(name + ".gate", into(config, AdapterConfig::kGate), group);
  }

  std::int64_t columns() const { return up.outputs(); }  // this rank's part of the ffn's width

  // [batch, tokens, columns], as all that is ffn wide.
  struct Saved {
    TensorRef up, gate;   // results of the products
    TensorRef activated;  // what `down` reads; null: it is not kept
  };
  void carve(const CallSizes& sizes, bool keeps_activated, Carver& carver, Saved& saved) const {
    const Shape shape{sizes.batch, sizes.tokens, columns()};
    saved.up = carver.take(sizes.compute, shape);
    if (gate) saved.gate = carver.take(sizes.compute, shape);
    if (keeps_activated) saved.activated = carver.take(sizes.compute, shape);
  }

  void visit(const ParameterVisitor& visitor) {
    if (gate) gate->visit(visitor);
    up.visit(visitor);
    down.visit(visitor);
  }

  // `self`: a layer, const or not.
  template <class Self, class Visit>
  static void for_each_linear(Self& self, const Visit& visit_linear) {
    if (self.gate) visit_linear(*self.gate);
    visit_linear(self.up);
    visit_linear(self.down);
  }

  void add_to(Work& work) const {
    for_each_linear(*this, [&](const Linear& linear) { linear.add_to(work); });
    work.activated_columns = columns() * (gate ? 2 : 1);
  }

  // y[.., hidden] from x[.., hidden]; `workspace` [.., ffn] is used where the activation is not kept.
  void forward(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved, TensorRef workspace) const {
    const TensorRef activated = saved.activated ? saved.activated : workspace;
    if (gate) gate->forward(pass, saved.gate, x);
    up.forward(pass, saved.up, x, {.activation = activation, .activated = activated, .gate = saved.gate});
    down.forward(pass, y, activated);
  }
  // Recomputes `saved` from x.
  void recompute(const LayerPass& pass, TensorRef x, const Saved& saved) const {
    if (gate) gate->forward(pass, saved.gate, x);
    up.forward(pass, saved.up, x);
  }

  // dx from dy; dffn is workspace [.., ffn], `share` [.., hidden], of a gated block. An activation that is not kept
  // overwrites what is saved of `up`, and the gradient of the gate the gate, which nothing needs after.
  void backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved, TensorRef dffn,
                TensorRef share) const {
    down.backward_input(pass, dffn, dy,
                        {.activation = activation,
                         .pre_activation = saved.up,
                         .activated = saved.activated ? TensorRef() : saved.up,
                         .gate = saved.gate,
                         .dgate = saved.gate});
    down.backward_weight(pass, dy, input_of_down(saved));
    if (gate) return up.backward_with(*gate, pass, dx, dffn, saved.gate, x, share);
    up.backward(pass, dx, dffn, x);
  }

  // Weight gradients that a backward with weights_later left out, from the same tensors.
  void weight_gradients(const LayerPass& pass, TensorRef dy, TensorRef dffn, TensorRef x, const Saved& saved) const {
    down.backward_weight(pass, dy, input_of_down(saved), /*alone=*/true);
    up.backward_weight(pass, dffn, x, /*alone=*/true);
    if (gate) gate->backward_weight(pass, saved.gate, x, /*alone=*/true);
  }

 private:
  // After backward's input gradient.
  static TensorRef input_of_down(const Saved& saved) { return saved.activated ? saved.activated : saved.up; }

  static Linear::Config into(const MlpConfig& config, AdapterConfig::Target target) {
    return {.inputs = config.hidden_size,
            .outputs = config.ffn_hidden_size,
            .bias = config.bias,
            .of_all_tokens = true,
            .adapters = LayerAdapters::of(config.adapters, {{target, ""}})};
  }
};

}  // namespace teratron
