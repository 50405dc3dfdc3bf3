// What a layer needs to know about the call it is in: where its operations run, the group its parameters are split
// over, and where the tokens stand.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "ops/backend.h"

namespace teratron {

// One micro-batch, or one token slice of it, on its way through the layers.
struct Step {
  Backend& backend;
  Communicator& tensor;                // the tensor-parallel group
  std::int64_t batch = 1, tokens = 0;  // sequences, and tokens of each in this call
  std::int64_t first_position = 0;     // of the slice in its sequence
  std::int64_t first_sample = 0;       // of the micro-batch in the global batch
  std::int64_t sequence_length = 0;    // of the whole sequence
  std::uint64_t seed = 0;
  std::uint32_t iteration = 0;
  bool training = false;    // dropout is active only then
  bool accumulate = false;  // parameter gradients: add to what is there

  // The dropout of `probability` for one place in the model. `place` is a layer (times its sub-layers).
  Dropout dropout(double probability, RandomPurpose purpose, std::int64_t place) const {
    Dropout dropout;
    dropout.probability = training ? probability : 0.0;
    dropout.random = {seed, purpose, static_cast<std::uint32_t>(place), iteration};
    dropout.first_sample = first_sample;
    dropout.sequence_length = sequence_length;
    dropout.first_position = first_position;
    return dropout;
  }
};

}  // namespace teratron
