#include "executor/preferences.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace teratron {
namespace {

struct Pair {
  double chosen = 0, rejected = 0;  // log p - log p of the reference
  double weight = 0;
  double slope = 0;  // negated derivative of the weighted loss by chosen - rejected
};

// Pairs of a sequence, by their number - 1.
std::vector<Pair> pairs_of(std::span<const std::int32_t> answers, std::span<const float> weights,
                           std::span<const double> losses, std::span<const double> reference_losses) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == 0) continue;
    const auto number = static_cast<std::size_t>(std::abs(answers[i]));
    pairs.resize(std::max(pairs.size(), number));
    Pair& pair = pairs[number - 1];
    (answers[i] > 0 ? pair.chosen : pair.rejected) += reference_losses[i] - losses[i];
    pair.weight = double{weights[i]};
  }
  return pairs;
}

void add_pair(double beta, Pair& pair, LossSums& sums) {
  const double chosen = beta * pair.chosen, rejected = beta * pair.rejected, margin = chosen - rejected;
  // log(1 + exp(-margin)) and its slope, neither of which overflows.
  const double small = std::exp(-std::abs(margin));
  const double loss = std::max(-margin, 0.0) + std::log1p(small);
  pair.slope = pair.weight * beta * (margin > 0 ? small : 1) / (1 + small);
  const double values[] = {loss, chosen, rejected, margin, margin > 0 ? 1.0 : 0.0};
  for (std::size_t kind = 0; kind < std::size(values); ++kind) sums.of_kind[kind] += pair.weight * values[kind];
}

}  // namespace

const std::vector<ModelTraits::Loss>& preference_losses() {
  static const std::vector<ModelTraits::Loss> kinds = {
      {.name = "dpo loss", .metric = "dpo_loss", .has_perplexity = false},
      {.name = "reward chosen", .metric = "reward_chosen", .is_rate = true},
      {.name = "reward rejected", .metric = "reward_rejected", .is_rate = true},
      {.name = "reward margin", .metric = "reward_margin", .is_rate = true, .in_progress = true},
      {.name = "reward accuracy", .metric = "reward_accuracy", .is_rate = true, .in_progress = true}};
  return kinds;
}

std::vector<float> preference_weights(const PreferenceConfig& config, const MicroBatch& micro_batch,
                                      std::span<const double> losses, std::span<const double> reference_losses,
                                      LossSums& sums) {
  check_equal(micro_batch.answers.size(), micro_batch.targets.size(), "targets with the answer that they belong to");
  check_equal(losses.size(), micro_batch.targets.size(), "losses of targets");
  check_equal(reference_losses.size(), losses.size(), "losses of targets without adapters");
  std::vector<float> weights(losses.size());
  const auto tokens = static_cast<std::size_t>(micro_batch.tokens);
  for (std::size_t begin = 0; begin < losses.size(); begin += tokens) {
    const std::span<const std::int32_t> answers = micro_batch.answers.subspan(begin, tokens);
    std::vector<Pair> pairs = pairs_of(answers, micro_batch.weights.subspan(begin, tokens),
                                       losses.subspan(begin, tokens), reference_losses.subspan(begin, tokens));
    for (Pair& pair : pairs) add_pair(config.beta, pair, sums);
    for (std::size_t i = 0; i < tokens; ++i) {
      if (answers[i] == 0) continue;
      const double slope = pairs[static_cast<std::size_t>(std::abs(answers[i])) - 1].slope;
      weights[begin + i] = static_cast<float>(answers[i] > 0 ? slope : -slope);
    }
  }
  return weights;
}

}  // namespace teratron
