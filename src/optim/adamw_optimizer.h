// AdamW over declared parameters: the global gradient norm, then one pass over all. Biases and norms are not decayed
// (Megatron-LM; Parameter::decay).
#pragma once

#include <cstdint>
#include <span>

#include "comm/mesh.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double clip = 1.0;  // largest global gradient norm; 0: no clipping
};

// The L2 norm of all gradients of the model together, the same on all ranks, who each pass the parameters they hold;
// what several hold counts once. Infinite or NaN, on every rank, where any gradient is. `riders` are summed over the
// ranks of the model in the same message.
double gradient_norm(Backend& backend, std::span<Parameter* const> parameters, const Mesh& mesh,
                     std::span<double> riders = {});

struct AdamWStep {
  double learning_rate = 0;
  std::int64_t update = 1;    // number of the update, counted from 1: it enters the bias correction
  double gradient_norm = 0;   // as returned above
  double gradient_scale = 1;  // of gradients and norm: 1 / loss scale
  std::uint64_t seed = 0;     // of the rounding of bf16 moments
};

// Updates what this rank keeps the state of (Parameter::sharding) from clipped gradients.
void adamw_update(Backend& backend, std::span<Parameter* const> parameters, const AdamWSettings& settings,
                  const AdamWStep& step);

}  // namespace teratron
