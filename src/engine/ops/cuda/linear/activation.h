// GELU, SiLU, tanh, ReLU and their derivatives (ops/ref/activation.h), in fp32.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "ops/backend.h"
#include "ops/cuda/kernels/ptx.h"

namespace teratron::cuda {

struct ValueAndSlope {
  float value, slope;
};

template <Activation kActivation>
__device__ inline ValueAndSlope activate(float x) {
  if constexpr (kActivation == Activation::kGeluTanh) {
    constexpr float kScale = 0.7978845608028654F, kCubic = 0.044715F;  // sqrt(2 / pi)
    // (1 + tanh(u)) / 2 is the sigmoid of 2 u, which takes fewer instructions.
    constexpr float kLog2E = 1.4426950408889634F;
    const float sigmoid = fast_reciprocal(1 + fast_exp2(-2 * kLog2E * kScale * x * (1 + kCubic * x * x)));
    const float inner_slope = kScale * (1 + 3 * kCubic * x * x);
    return {x * sigmoid, sigmoid + 2 * x * sigmoid * (1 - sigmoid) * inner_slope};
  } else if constexpr (kActivation == Activation::kSilu) {
    const float sigmoid = 1 / (1 + expf(-x));
    return {x * sigmoid, sigmoid * (1 + x * (1 - sigmoid))};
  } else if constexpr (kActivation == Activation::kTanh) {
    const float tanh = tanhf(x);
    return {tanh, 1 - tanh * tanh};
  } else if constexpr (kActivation == Activation::kRelu) {
    return {x < 0 ? 0 : x, x > 0 ? 1.0F : 0.0F};
  } else {
    constexpr float kRoot = 0.7071067811865476F, kDensity = 0.3989422804014327F;  // 1 / sqrt(2), 1 / sqrt(2 pi)
    const float below = 0.5F * (1 + erff(x * kRoot));
    return {x * below, below + x * kDensity * expf(-0.5F * x * x)};
  }
}

}  // namespace teratron::cuda
