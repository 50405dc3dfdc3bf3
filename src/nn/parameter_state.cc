#include "nn/parameter_state.h"

#include "base/error.h"

namespace teratron {
namespace {

bool is_sharded(const Parameter& parameter) { return parameter.sharding.ranks > 1; }

// Of a type that is no longer than the gradient's.
TensorRef scratch(const Parameter& parameter, DType dtype) {
  const TensorRef& memory = parameter.gradient;
  check(static_cast<bool>(memory) && size_of(dtype) <= size_of(memory.dtype),
        "a parameter with optimizer state has a gradient");
  return {memory.data, dtype, memory.shape};
}

}  // namespace

DType weights_dtype(const Parameter& parameter) {
  return parameter.state.master ? parameter.state.master.dtype : parameter.value.dtype;
}

void store_weights(Backend& backend, const Parameter& parameter, const FillTensor& fill) {
  if (!parameter.state.master) return fill(parameter.value);
  const TensorRef whole = scratch(parameter, parameter.state.master.dtype);
  fill(whole);
  backend.copy(parameter.value, whole);
  backend.copy(parameter.state.master, slice_of(whole, own_shard(parameter)));
}

void store_state(Backend& backend, const Parameter& parameter, TensorRef own, const FillTensor& fill) {
  if (!is_sharded(parameter)) return fill(own.reshape(parameter.shape));
  const TensorRef whole = scratch(parameter, own.dtype);
  fill(whole);
  backend.copy(own, slice_of(whole, own_shard(parameter)));
}

TensorRef whole_weights(Backend& backend, const Parameter& parameter, Communicator& data) {
  if (!parameter.state.master) return parameter.value;
  return whole_state(backend, parameter, parameter.state.master, data);
}

TensorRef whole_state(Backend& backend, const Parameter& parameter, TensorRef own, Communicator& data) {
  if (!is_sharded(parameter)) return own.reshape(parameter.shape);
  check_equal(data.size(), parameter.sharding.ranks, "ranks that share the optimizer's state out");
  const TensorRef whole = scratch(parameter, own.dtype);
  if (data.rank() != 0) {
    data.start_send(own, 0).wait();
    return whole;
  }
  backend.copy(slice_of(whole, own_shard(parameter)), own);
  for (int rank = 1; rank < data.size(); ++rank) {
    data.start_receive(slice_of(whole, shard_of(parameter, rank)), rank).wait();
  }
  return whole;
}

}  // namespace teratron
