#include "ops/back_ends.h"

namespace teratron::testing {

std::vector<BackEnd> back_ends() {
  return {
      {"reference_f32", [] { return make_reference_backend(DType::kF32); }},
      {"cpu", [] { return make_cpu_backend(); }},
  };
}

}  // namespace teratron::testing
