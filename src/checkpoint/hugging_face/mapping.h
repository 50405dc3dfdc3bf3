// Where a parameter's values are in the files that Hugging Face's models are saved in: under which name, and turned
// how. Layers know nothing of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

struct HuggingFaceTensor {
  std::string name;
  bool transposed = false;          // stored [inputs, outputs], ours is [outputs, inputs]
  std::vector<std::int64_t> shape;  // as stored there; without rows that only round the vocabulary's size up
};

// InternalError: a parameter that the kind of model does not have.
HuggingFaceTensor hugging_face_tensor(ModelKind kind, const Parameter& parameter);

}  // namespace teratron
