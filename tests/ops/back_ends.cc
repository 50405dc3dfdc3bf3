#include "ops/back_ends.h"

namespace teratron::testing {

std::vector<BackEnd> back_ends() {
  return {
      {"reference_f32", [] { return make_reference_backend(DType::kF32); }},
      {"reference_bf16", [] { return make_reference_backend(DType::kBF16); }},
      {"reference_f16", [] { return make_reference_backend(DType::kF16); }},
      {"cpu", [] { return make_cpu_backend(); }},
      {"cpu_bf16", [] { return make_cpu_backend({.compute_dtype = DType::kBF16}); }},
      // Simulates a processor without products of bf16.
      {"cpu_bf16_widened", [] { return make_cpu_backend({.compute_dtype = DType::kBF16, .bf16_products = false}); }},
      {"cpu_f16", [] { return make_cpu_backend({.compute_dtype = DType::kF16}); }},
  };
}

}  // namespace teratron::testing
