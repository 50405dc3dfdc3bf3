#include "nn/parameter_state.h"

#include "base/error.h"

namespace teratron {
namespace {

bool is_sharded(const Parameter& parameter) { return parameter.sharding.ranks > 1; }

// `dtype` is no longer than the gradient's.
TensorRef scratch(const Parameter& parameter, DType dtype) {
  const TensorRef& memory = parameter.gradient;
  check(static_cast<bool>(memory) && size_of(dtype) <= size_of(memory.dtype),
        "a parameter with optimizer state has a gradient");
  return {memory.data, dtype, memory.shape};
}

bool has_remainders(const Parameter& parameter) { return parameter.state.master.dtype == DType::kU16; }

// Each rank's own part of `whole` to rank 0.
void gather_shards(const Parameter& parameter, const TensorRef& whole, Communicator& data) {
  if (!is_sharded(parameter)) return;
  check_equal(data.size(), parameter.sharding.ranks, "ranks that share the optimizer's state out");
  if (data.rank() != 0) return data.start_send(slice_of(whole, own_shard(parameter)), 0).wait();
  for (int rank = 1; rank < data.size(); ++rank) {
    data.start_receive(slice_of(whole, shard_of(parameter, rank)), rank).wait();
  }
}

}  // namespace

DType weights_dtype(const Parameter& parameter) {
  return parameter.state.master ? accumulation_dtype_of(parameter.value.dtype) : parameter.value.dtype;
}

void store_weights(Backend& backend, const Parameter& parameter, const FillTensor& fill) {
  const TensorRef& master = parameter.state.master;
  if (!master) return fill(parameter.value);
  const ElementRange own = own_shard(parameter);
  const TensorRef whole = scratch(parameter, weights_dtype(parameter));
  fill(whole);
  backend.copy(parameter.value, whole);
  if (has_remainders(parameter)) {
    backend.split_floats(slice_of(parameter.value, own), master, slice_of(whole, own));
  } else {
    backend.copy(master, slice_of(whole, own));
  }
}

void store_state(Backend& backend, const Parameter& parameter, TensorRef own, const FillTensor& fill) {
  if (!is_sharded(parameter)) return fill(own.reshape(parameter.shape));
  const TensorRef whole = scratch(parameter, own.dtype);
  fill(whole);
  backend.copy(own, slice_of(whole, own_shard(parameter)));
}

TensorRef whole_weights(Backend& backend, const Parameter& parameter, Communicator& data) {
  const TensorRef& master = parameter.state.master;
  if (!master) return parameter.value;
  if (!has_remainders(parameter)) return whole_state(backend, parameter, master, data);
  const ElementRange own = own_shard(parameter);
  const TensorRef whole = scratch(parameter, weights_dtype(parameter));
  backend.join_floats(slice_of(whole, own), slice_of(parameter.value, own), master);
  gather_shards(parameter, whole, data);
  return whole;
}

TensorRef whole_state(Backend& backend, const Parameter& parameter, TensorRef own, Communicator& data) {
  if (!is_sharded(parameter)) return own.reshape(parameter.shape);
  const TensorRef whole = scratch(parameter, own.dtype);
  backend.copy(slice_of(whole, own_shard(parameter)), own);
  gather_shards(parameter, whole, data);
  return whole;
}

}  // namespace teratron
