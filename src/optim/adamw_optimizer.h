// AdamW over declared parameters: global gradient clipping, then one pass a parameter. Biases and norms are not decayed
// (Megatron-LM; Parameter::decay).
#pragma once

#include <cstdint>
#include <span>

#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double clip = 1.0;  // largest global gradient norm; 0: no clipping
};

// The L2 norm of all gradients together. UserError naming the first parameter whose gradient is not finite.
double gradient_norm(Backend& backend, std::span<Parameter* const> parameters);

// Update number `update`, counted from 1 (it enters the bias correction). Returns the norm before clipping.
double adamw_update(Backend& backend, std::span<Parameter* const> parameters, const AdamWSettings& settings,
                    double learning_rate, std::int64_t update);

}  // namespace teratron
