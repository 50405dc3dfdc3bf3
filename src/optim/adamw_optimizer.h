// AdamW over declared parameters: global gradient clipping, then one pass a parameter. Biases and norms are not decayed
// (Megatron-LM; Parameter::decay).
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double clip = 1.0;  // largest global gradient norm; 0: no clipping
};

// The L2 norm of all gradients of the model together, the same on all ranks of `model_group`, who each pass the
// parameters they hold; what several hold counts once. UserError, on every rank, naming the first parameter whose
// gradient is not finite.
double gradient_norm(Backend& backend, std::span<Parameter* const> parameters, Communicator& model_group);

// Update number `update`, counted from 1 (it enters the bias correction). Returns the norm before clipping.
double adamw_update(Backend& backend, std::span<Parameter* const> parameters, Communicator& model_group,
                    const AdamWSettings& settings, double learning_rate, std::int64_t update);

}  // namespace teratron
