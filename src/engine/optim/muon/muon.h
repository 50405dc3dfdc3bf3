// Muon (Jordan et al., 2024) as Moonshot scales it (Liu et al., arXiv 2502.16982): the weight matrices of the layers
// move along their momentum with all singular values brought near 1, times 0.2 sqrt(max(rows, columns)). AdamW moves
// them about as far, so both take the same learning rate and weight decay. All other parameters (embeddings, heads,
// biases, norms) are AdamW's. Queries, keys and values are a matrix each.
#pragma once

#include "optim/adamw.h"

namespace teratron {

struct MuonSettings {
  double momentum = 0.95;
  double epsilon = 1e-7;  // added to the norm that a matrix is divided by
};

class MuonOptimizer final : public Optimizer {
 public:
  // `rest`: the AdamW of the other parameters; its clip and weight decay are for all. bf16_state: momentum and moments
  // are kept in bf16, the momentum rounded to nearest.
  MuonOptimizer(const MuonSettings& settings, const AdamWSettings& rest, bool bf16_state = false)
      : settings_(settings), rest_settings_(rest), rest_(rest, bf16_state), bf16_state_(bf16_state) {}

  std::vector<OptimizerSlot> slots(const Parameter& parameter, DType compute) const override;
  UpdateMemory memory(std::span<Parameter* const> parameters, DType compute) const override;
  void update(Backend& backend, const Mesh& mesh, std::span<Parameter* const> parameters, const UpdateStep& step,
              Carver workspace) const override;

 private:
  MuonSettings settings_;
  AdamWSettings rest_settings_;
  AdamWOptimizer rest_;
  bool bf16_state_;
};

}  // namespace teratron
