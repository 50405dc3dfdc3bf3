// LinearWeights: a weight matrix and its bias, and the products with them.
#pragma once

#include "nn/layer_pass.h"
#include "nn/parameter.h"

namespace teratron {

// Steps that a back end computes together with a product: from its result (LinearForward), and from the gradient of its
// input (LinearInputGradient).
struct LinearEpilogue {
  Activation activation = Activation::kNone;
  TensorRef activated, gate;
  bool rows_alone = false;
  LowRankProducts added = {};  // where takes_low_ranks()
};
struct LinearInputEpilogue {
  Activation activation = Activation::kNone;
  TensorRef pre_activation, activated, gate, dgate;
  LowRankProducts added = {};
};

// A weight matrix and its bias, wherever they are declared. All products with weights go through here.
struct LinearWeights {
  const Parameter& weight;          // [outputs, inputs]
  const Parameter* bias = nullptr;  // [outputs], optional
  bool of_all_tokens = false;  // the rows are the tokens of the pass, of which a back end may leave out the padding

  // Whether the back end adds low-rank products to the sums of this one.
  bool takes_low_ranks(const LayerPass& pass) const { return pass.backend.has_frozen_linear() && !multiplies_tiles(); }

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
                                .lengths = lengths(pass),
                                .packed = weight.packed_for(WeightProduct::kForward)};
    if (multiplies_tiles()) return pass.backend.tile_linear_forward({product});
    if (is_general(epilogue.added)) return pass.backend.frozen_linear_forward({product, epilogue.added});
    pass.backend.linear_forward(product);
  }

  // dx[T, inputs] from dy[T, outputs]
  void backward_input(const LayerPass& pass, TensorRef dx, TensorRef dy,
                      const LinearInputEpilogue& epilogue = {}) const {
    const LinearInputGradient product{.dx = dx,
                                      .dy = dy,
                                      .weight = weight.value,
                                      .activation = epilogue.activation,
                                      .pre_activation = epilogue.pre_activation,
                                      .activated = epilogue.activated,
                                      .gate = epilogue.gate,
                                      .dgate = epilogue.dgate,
                                      .lengths = lengths(pass),
                                      .packed = weight.packed_for(WeightProduct::kInputGradient)};
    if (is_general(epilogue.added)) return pass.backend.frozen_linear_input_gradient({product, epilogue.added});
    pass.backend.linear_input_gradient(product);
  }

  // Does nothing with pass.weights_later, or if the weight is frozen.
  void backward_weight(const LayerPass& pass, TensorRef dy, TensorRef x) const {
    if (pass.weights_later || weight.frozen) return;
    pass.backend.linear_weight_gradient({.dweight = weight.gradient,
                                         .dy = dy,
                                         .x = x,
                                         .dbias = bias == nullptr ? TensorRef() : bias->gradient,
                                         .accumulate = pass.accumulate,
                                         .lengths = lengths(pass)});
  }

 private:
  // Whether products multiply the whole numbers of tiles (Backend::tile_linear_forward).
  bool multiplies_tiles() const { return is_tiles(weight.value.dtype) && !weight.widens_tiles; }
  // Whether a product needs the operations of frozen layers.
  bool is_general(const LowRankProducts& added) const { return added[0].rows || is_tiles(weight.value.dtype); }
  TensorRef lengths(const LayerPass& pass) const { return of_all_tokens ? pass.key_lengths : TensorRef(); }
};

}  // namespace teratron
