// LayerPass: the forward or backward pass a layer is in. It has the back end, the group that splits the parameters, and
// the position of the tokens.
//
// Between the split layers lies the residual stream. Without sequence parallelism every rank of the tensor group holds
// all of it; with it (Korthikanti et al., arXiv 2205.05198, section 4.2.2) each holds an equal run of its rows, and
// norms, dropout and residual adds work on those. A rank's "own rows" are the rows of a full tensor that it holds.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "nn/carver.h"
#include "ops/backend.h"

namespace teratron {

// One micro-batch, or one token slice of it, on its way through the layers.
struct LayerPass {
  Backend& backend;
  Communicator& tensor;                // the tensor-parallel group
  std::int64_t batch = 1, tokens = 0;  // sequences, and tokens of each in this call
  std::int64_t first_position = 0;     // of the slice in its sequence
  // Tokens in each sequence's key/value cache, i32 [batch], which are also the positions of the next tokens. Null
  // outside of generation.
  TensorRef cache_lengths;
  std::int64_t first_cache = 0;  // of generation: of the batch's first sequence
  TensorRef key_lengths;         // i32 [batch], optional: tokens of each sequence; the rest of it is padding
  TensorRef first_keys;          // i32 [batch, tokens], optional: the first position that each token sees
  // i32 [batch, tokens], optional: positions of the tokens where they are not those of the sequence; and the table of
  // rotary positions (nn/rotary.h), of models that have them.
  TensorRef position_ids, rotary;
  std::int64_t first_sample = 0;     // of the micro-batch in the global batch
  std::int64_t sequence_length = 0;  // of the whole sequence
  std::uint64_t seed = 0;
  std::uint32_t iteration = 0;
  TensorRef adapters;       // u8: memory that adapters write within one product; null: there are none
  TensorRef counters;       // i32 [2], optional: iteration and first_sample, where dropout should take them from there
  bool training = false;    // dropout is active only then
  bool accumulate = false;  // parameter gradients: add to what is there
  bool without_adapters = false;  // forward: the model as it was before them
  bool sequence_parallel = false;
  // Backward leaves the weights of linear layers to a pass of their own (arXiv 2401.10241).
  bool weights_later = false;

  bool is_next_token() const { return static_cast<bool>(cache_lengths); }

  CallSizes sizes() const {
    return {.batch = batch,
            .tokens = tokens,
            .tensor_ranks = tensor.size(),
            .sequence_parallel = sequence_parallel,
            .compute = backend.compute_dtype(),
            .accumulation = backend.accumulation_dtype()};
  }
  Shape stream_shape(std::int64_t hidden) const { return sizes().stream_shape(hidden); }
  TensorRef own_rows(TensorRef full) const {
    if (!sequence_parallel) return full;
    const Shape shape = stream_shape(full.dim(-1));
    const std::int64_t rows = shape[1], first = rows * tensor.rank();
    return full.flatten_rows().slice(0, first, first + rows).reshape(shape);
  }
  // Under sequence parallelism, gathers every rank's own rows into the full tensor.
  void gather_rows(TensorRef full) const {
    if (sequence_parallel) tensor.all_gather(full.flatten_rows(), own_rows(full).flatten_rows());
  }
  // Starts the sum of all ranks' full tensors, in place; under sequence parallelism a rank gets its own rows of it.
  Pending start_sum(TensorRef full) const {
    if (!sequence_parallel) return tensor.start_all_reduce(full);
    return tensor.start_reduce_scatter(own_rows(full).flatten_rows(), full.flatten_rows());
  }

  // Dropout of the residual stream. Under sequence parallelism a rank's rows need not begin with a sequence, so all
  // sequences up to the end of the micro-batch count as one.
  Dropout stream_dropout(double probability, RandomPurpose purpose, std::int64_t layer) const {
    Dropout mask = dropout(probability, purpose, layer);
    if (!sequence_parallel) return mask;
    check(!counters, "the first sample is not read from memory");
    check(batch == 1 || tokens == sequence_length, "a rank's rows follow each other in the global batch");
    mask.first_position += first_sample * sequence_length + batch * tokens / tensor.size() * tensor.rank();
    mask.sequence_length = (first_sample + batch) * sequence_length;
    mask.first_sample = 0;
    return mask;
  }

  // Dropout of `probability` for one layer (times its sub-layers): each draws its own masks.
  Dropout dropout(double probability, RandomPurpose purpose, std::int64_t layer) const {
    Dropout dropout;
    dropout.probability = training ? probability : 0.0;
    dropout.random = {seed, purpose, static_cast<std::uint32_t>(layer), iteration};
    dropout.first_sample = first_sample;
    dropout.sequence_length = sequence_length;
    dropout.first_position = first_position;
    dropout.counters = counters;
    return dropout;
  }
};

}  // namespace teratron
