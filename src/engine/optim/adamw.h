// AdamW (Loshchilov and Hutter, arXiv 1711.05101), the two moments of each parameter, all parameters in one call of the
// back end. Biases and norms are not decayed (Megatron-LM; Parameter::decay).
#pragma once

#include "optim/optimizer.h"

namespace teratron {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double clip = 1.0;  // largest global gradient norm; 0: no clipping
};

class AdamWOptimizer final : public Optimizer {
 public:
  // bf16_moments: the moments are bf16, rounded by chance, and not of the accumulation type.
  explicit AdamWOptimizer(const AdamWSettings& settings = {}, bool bf16_moments = false)
      : settings_(settings), bf16_moments_(bf16_moments) {}

  std::vector<OptimizerSlot> slots(const Parameter& parameter, DType compute) const override;
  void update(Backend& backend, const Mesh& mesh, std::span<Parameter* const> parameters, const UpdateStep& step,
              Carver workspace) const override;

 private:
  AdamWSettings settings_;
  bool bf16_moments_;
};

}  // namespace teratron
