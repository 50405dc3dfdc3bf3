// Parameter: a trainable tensor, declared once. Allocation, initialisation, decay groups, checkpoints, conversion and
// counting all walk the same declarations, in order.
#pragma once

#include <functional>
#include <string>

#include "tensor/memory.h"

namespace teratron {

enum class Init { kZero, kOne, kNormal };

struct Parameter {
  std::string name;  // global and free of layout: "layers.3.attention.qkv.weight"
  Shape shape;       // as stored here: [outputs, inputs] for linear layers
  Init init = Init::kZero;
  double init_scale = 1.0;        // times init_method_std; 1/sqrt(2N) just before a residual add (Megatron section 4)
  std::int64_t padding_rows = 0;  // the last rows of axis 0 that only round the size up: zero, never stored
  bool decay = false;             // weight decay: matrices and embeddings, never biases and norms
  std::string hugging_face;       // name in a Hugging Face GPT-2 checkpoint
  bool hugging_face_transposed = false;  // stored there as [inputs, outputs] (its Conv1D)

  TensorRef value, gradient, moment1, moment2;  // views into arenas; null until placed
};

using ParameterVisitor = std::function<void(Parameter&)>;

}  // namespace teratron
