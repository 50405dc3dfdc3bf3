// Constants that bench/fit_published.cc fitted to the fitting half.
#include "plan/reproduction/published_prediction.h"

namespace teratron::plan {

std::span<const RunConstant> fitted_run_constants() {
  static constexpr RunConstant kConstants[] = {
      {"Ampere", "product_efficiency", 0.85},   {"Ampere", "saturation", 32},
      {"Ampere", "attention_efficiency", 0.55}, {"Ampere", "head_saturation", 16},
      {"Hopper", "product_efficiency", 0.75},   {"Hopper", "saturation", 32},
      {"Hopper", "attention_efficiency", 0.4},  {"Hopper", "head_saturation", 16},
      {"Hopper", "fp8_efficiency", 0.6},        {"Ada", "product_efficiency", 0.9},
      {"Ada", "saturation", 32},                {"Ada", "attention_efficiency", 0.6},
      {"Ada", "head_saturation", 16},           {"Ada", "fp8_efficiency", 0.85},
      {"Blackwell", "product_efficiency", 0.9}, {"Blackwell", "saturation", 32},
      {"Blackwell", "attention_efficiency", 0.6}, {"Blackwell", "head_saturation", 16},
      {"Blackwell", "fp8_efficiency", 0.85},    {"L40S", "power", 0.6},
      {"RTX PRO 6000", "power", 0.9},           {"H100-SXM5-96GB", "power", 0.9},
      {"mosaicml", "point_passes", 1.2},        {"mosaicml", "loss_passes", 10},
      {"mosaicml", "sum_interference", 0.2},    {"mosaicml", "kernel_start", 5e-6},
      {"mosaicml", "step_start", 0.02},         {"llmq", "point_passes", 0.8},
      {"llmq", "scaling_passes", 2},            {"llmq", "kernel_start", 3e-6},
      {"llmq", "step_start", 0.01},             {"torchtitan", "point_passes", 0.8},
      {"torchtitan", "sum_interference", 0.2},  {"torchtitan-eager", "point_passes", 1.5},
      {"torchtitan-eager", "sum_interference", 0.2}, {"selene", "kernel_start", 10e-6},
      {"megatron-gpt", "kernel_start", 10e-6},  {"megatron-gpt", "sum_interference", 0.2},
  };
  return kConstants;
}

}  // namespace teratron::plan
