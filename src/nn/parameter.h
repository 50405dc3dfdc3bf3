// Parameter: a trainable tensor, declared once. Allocation, initialisation, decay groups, splitting over ranks,
// checkpoints, conversion and counting all walk the same declarations, in order.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "tensor/memory.h"

namespace teratron {

enum class Init { kZero, kOne, kNormal };

// The caller's place in its tensor-parallel group.
struct TensorPlace {
  int rank = 0, size = 1;
};

// How a parameter lies on the ranks of a tensor-parallel group: `axis` is cut into `blocks` equal blocks (3 for packed
// queries, keys and values) and each block into an equal part a rank, so that heads stay whole (Megatron-LM section 3).
// kNoAxis: every rank holds all of it.
struct Split {
  static constexpr int kNoAxis = -1;
  int axis = kNoAxis;
  std::int64_t blocks = 1;
};

struct Parameter {
  std::string name;  // global and free of layout: "layers.3.attention.qkv.weight"
  Shape shape;       // as stored here: [outputs, inputs] for linear layers; a rank's part where it is split
  Init init = Init::kZero;
  double init_scale = 1.0;        // times init_method_std; 1/sqrt(2N) just before a residual add (Megatron section 4)
  std::int64_t padding_rows = 0;  // the last rows of the global axis 0 that only round it up: zero, never stored
  bool decay = false;             // weight decay: matrices and embeddings, never biases and norms
  std::string hugging_face;       // name in a Hugging Face GPT-2 checkpoint
  bool hugging_face_transposed = false;  // stored there as [inputs, outputs] (its Conv1D)
  Split split;
  TensorPlace place;  // set for every parameter: one that is not split counts once, on the first rank

  TensorRef value, gradient, moment1, moment2;  // views into arenas; null until placed

  bool is_split() const { return split.axis != Split::kNoAxis; }
  Shape global_shape() const {
    Shape global = shape;
    if (is_split()) global[split.axis] *= place.size;
    return global;
  }
};

using ParameterVisitor = std::function<void(Parameter&)>;

// A run of consecutive rows of a rank's part that are consecutive in the whole parameter too; a parameter of one axis
// is a column of rows. Rows count through all blocks; columns are those of the whole parameter that the rank holds.
struct ParameterPiece {
  std::int64_t local_row, global_row, rows;
  std::int64_t global_column, columns;
};

// The pieces that rank `rank` of the parameter's group holds, in order, padding rows left out. At most `blocks` many.
std::vector<ParameterPiece> pieces_of(const Parameter& parameter, int rank);

}  // namespace teratron
