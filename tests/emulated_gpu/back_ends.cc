// The CUDA back end in place of the others, on an emulated GPU or a real one, as the program is linked.
#include "ops/back_ends.h"

namespace teratron::testing {

std::vector<BackEnd> back_ends() {
  std::vector<BackEnd> all;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    all.push_back({"cuda_" + std::string(name_of(dtype)), [=] { return make_cuda_backend({.compute_dtype = dtype}); }});
  }
  return all;
}

}  // namespace teratron::testing
