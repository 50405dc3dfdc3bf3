#include "checkpoint/hugging_face/mapping.h"

#include "base/error.h"
#include "checkpoint/hugging_face/gpt2_mapping.h"
#include "checkpoint/stored_tensor.h"

namespace teratron {

HuggingFaceTensor hugging_face_tensor(ModelKind kind, const Parameter& parameter) {
  HuggingFaceTensor tensor;
  switch (kind) {
    case ModelKind::kGpt2:
      tensor.name = gpt2_tensor_name(parameter.name);
      tensor.transposed = is_gpt2_tensor_transposed(parameter.name);
      break;
    case ModelKind::kBert: throw_user_error("BERT is not converted from and to Hugging Face yet");
  }
  tensor.shape = stored_shape(parameter);
  if (tensor.transposed) std::ranges::reverse(tensor.shape);
  return tensor;
}

}  // namespace teratron
