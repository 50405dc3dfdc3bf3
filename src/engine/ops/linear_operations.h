// Arguments of linear layers' operations, by the conventions and the legend of operations.h.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/tensor.h"

namespace teratron {

enum class Activation { kNone, kGeluTanh, kGeluErf, kSilu, kTanh, kRelu };

// `lengths`, i32 [B], optional: the T rows are B sequences of T / B tokens, and sequence b has text in its first
// lengths[b] rows; the others are padding. Callers do not use the results of padding, and give it finite values: a back
// end may compute it like text. Or it leaves padding out (the CPU, except in products of few rows) and sets its rows
// of y, dx and the forward's `activated` to 0.

// The two products that read a weight. Each reads it in an order of its own, for which it can be packed.
enum class WeightProduct { kForward, kInputGradient };

// `packed`, optional: the weight as Backend::pack_weight() packed it for this product. A back end reads one of the two;
// the results are the same.

// y[T,O] = x[T,I] weight[O,I]^T + bias[O]; with an activation, `activated` receives activation(y) of y as stored or, if
// a back end computes both in one kernel, of y before it is rounded, and y keeps the pre-activation for the backward
// pass. Linear layers have GELU, in either form, and SiLU. With a gate (Shazeer, arXiv 2002.05202), which another
// linear layer of the same x computed, `activated` receives activation(gate) * y instead.
struct LinearForward {
  TensorRef y, x, weight;
  TensorRef bias;  // optional
  Activation activation = Activation::kNone;
  TensorRef activated;  // [T,O], needed with an activation
  TensorRef gate;       // [T,O], optional
  // Every row of y has the bits it has in a call of its own, so that a sequence's next token does not depend on those
  // it is computed with. The reference and the CPU keep this; a GPU's library may sum in another order for other T.
  bool rows_alone = false;
  TensorRef lengths;  // optional
  TensorRef packed;   // u8, optional
};

// linear_forward() with weights in tiles (tensor/weight_tiles.h): linear.weight is [ceil(O / 16), I / 32], of q8_0 or
// q4_0. Each block of 32 columns of a row of x is rounded to whole numbers of a step, its largest magnitude over 127
// (whole_numbers_of), and y = the sum over the blocks, in their order, of a's step * b's step * the products of
// their whole numbers, which are exact. Every row of y has the bits it has in a call of its own; they differ only
// between processors with and without fused multiply-adds. CPUs alone.
struct TileLinearForward {
  LinearForward linear;
};

// dx[T,I] = dy[T,O] weight[O,I]. With an activation (x was activation(u)): dx[T,I] = (dy weight) * activation'(u), the
// gradient of u, and `activated` receives activation(u) again, for the weight gradient that follows. With a gate (x was
// activation(gate) * u): dx = (dy weight) * activation(gate), dgate = (dy weight) * u * activation'(gate), and
// `activated` receives activation(gate) * u. Where forward's result was kept, there is no `activated`. A back end may
// round dy weight to C before it multiplies it.
struct LinearInputGradient {
  TensorRef dx, dy, weight;
  Activation activation = Activation::kNone;
  TensorRef pre_activation;  // u [T,I]
  TensorRef activated;       // [T,I], optional; may share memory with pre_activation
  TensorRef gate;            // [T,I], optional
  TensorRef dgate;           // [T,I], with a gate; may be the gate
  TensorRef lengths;         // optional; dy is 0 after them
  TensorRef packed;          // u8, optional
};

// Product of low rank R that is added to the sums of another product (LoRA, nn/adapter.h). Null `rows`: none.
struct LowRankProduct {
  TensorRef rows;    // [T,R]
  TensorRef weight;  // forward: [n,R], of the outputs from first_output on; input gradient: [R,I]
  std::int64_t first_output = 0;
};
using LowRankProducts = std::array<LowRankProduct, 3>;

// linear_forward() and linear_input_gradient() with weights that are not trained: of C, or in tiles as in
// tile_linear_forward(), whose values are rounded once to C. Each low-rank product is added to the sums: in a forward
// rows weight^T, before bias and activation; in an input gradient rows weight, before the activation's derivative.
// Only back ends with has_frozen_linear() have these.
struct FrozenLinearForward {
  LinearForward linear;
  LowRankProducts added = {};
};
struct FrozenLinearInputGradient {
  LinearInputGradient linear;
  LowRankProducts added = {};
};

// dweight[O,I] (+)= dy[T,O]^T x[T,I]; dbias[O] (+)= sum over T of dy.
struct LinearWeightGradient {
  TensorRef dweight;  // A
  TensorRef dy, x;
  TensorRef dbias;  // A, optional
  bool accumulate = false;
  TensorRef lengths;  // optional; dy is 0 after them
};

}  // namespace teratron
