// Preferences: pairs of answers to a prompt, of which one was chosen and one rejected. Direct preference optimisation
// (DPO; Rafailov et al., arXiv 2305.18290, equation 7) learns them without a model of rewards:
//   loss = -log sigmoid(reward of the chosen - reward of the rejected),
//   reward = beta * (log p(answer) - log p(answer) of the reference model)
// The log-probability of an answer is the sum of its tokens'. The reference model is the one without adapters.
//
// The loss has the gradient of a weighted sum of its tokens' losses, whose weights follow from the losses themselves.
// So a step needs those of all of a pair's tokens before it can make the first gradient.
#pragma once

#include <span>
#include <vector>

#include "executor/micro_batch.h"
#include "executor/model.h"

namespace teratron {

struct PreferenceConfig {
  double beta = 0.1;  // the larger, the nearer the model stays to its reference
};

// Kinds of LossSums of pairs: their loss; rewards, their difference, and how often it is above 0, as rates.
const std::vector<ModelTraits::Loss>& preference_losses();

// Weights of the targets, [batch, tokens], with which the sum of their losses has the gradient of the pairs' losses,
// times the pairs' weights. `losses` and `reference_losses`: of the targets, in nats, with adapters and without.
// Adds to `sums`, by preference_losses().
std::vector<float> preference_weights(const PreferenceConfig& config, const MicroBatch& micro_batch,
                                      std::span<const double> losses, std::span<const double> reference_losses,
                                      LossSums& sums);

}  // namespace teratron
