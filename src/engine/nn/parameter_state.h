// Gathers and scatters a parameter's tensors on a rank (its tensor-parallel part): weights are a rounded copy and a
// master, and slots of the optimizer may be sharded over data-parallel ranks. The memory of the parameter's gradient,
// free between two updates, holds gathered tensors.
#pragma once

#include <functional>

#include "comm/mesh.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

// The group of Parameter::group.
inline Communicator& group_of(const Parameter& parameter, const Mesh& mesh) {
  return parameter.over_stages ? *mesh.model : *mesh.tensor;
}

// Writes a tensor of the parameter's shape.
using FillTensor = std::function<void(TensorRef whole)>;

// Weights: `fill` writes them in the type that the optimizer updates, and value and master follow.
void store_weights(Backend& backend, const Parameter& parameter, const FillTensor& fill);
// One of the optimizer's tensors, `own` in parameter.state.
void store_state(Backend& backend, const Parameter& parameter, TensorRef own, const FillTensor& fill);

// The reverse: whole tensors of the parameter's shape, valid until the next call, on rank 0 of the data-parallel group;
// elsewhere the result has no meaning. Every rank of the group calls them.
TensorRef whole_weights(Backend& backend, const Parameter& parameter, Communicator& data);
TensorRef whole_state(Backend& backend, const Parameter& parameter, TensorRef own, Communicator& data);

// Whether `whole`, which one of them returned, stays until the next update: it is not the gradient's memory.
inline bool stays(const Parameter& parameter, const TensorRef& whole) { return whole.data != parameter.gradient.data; }

// The type of what whole_weights returns.
DType weights_dtype(const Parameter& parameter);

}  // namespace teratron
