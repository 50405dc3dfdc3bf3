// Evaluation and generation with weights and activations of 16 bits: the numbers of fp32 within what storage rounds.
#include <gtest/gtest.h>

#include <cmath>

#include "eval/generation/generation.h"
#include "eval/windows.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

ModelConfig config() {
  ModelConfig config = small_config();
  config.hidden_size = 48;
  config.vocab_size = 90;
  config.max_position_embeddings = 24;
  config.init_method_std = 0.15;  // logits of size 1: the loss is some way from that of a model that knows nothing
  return config;
}

struct SixteenBits {
  DType dtype;
  double unit;
};
const SixteenBits kTypes[] = {{DType::kBF16, std::exp2(-8)}, {DType::kF16, std::exp2(-11)}};

constexpr std::int64_t kTargets = 600;

struct Losses {
  std::vector<float> each;  // of random targets, with the same weights but for their rounding
  double sum = 0;           // of the same targets, as evaluations score them
};

Losses losses_in(DType dtype) {
  const auto backend = make_cpu_backend({.compute_dtype = dtype});
  const std::int64_t tokens = config().max_position_embeddings, windows = kTargets / tokens;
  const RandomBatch text(1, kTargets + 1, config().vocab_size, 1);
  LanguageModel runner(*backend, config(), {.purpose = Purpose::kEvaluation, .batch = windows, .tokens = tokens});
  runner.allocate();
  runner.initialize(5);
  Losses losses{.each = std::vector<float>(kTargets)};
  const std::span ids(text.ids);
  runner.losses({.ids = ids.first(kTargets), .targets = ids.last(kTargets), .batch = windows, .tokens = tokens}, 0,
                losses.each);
  losses.sum = score_windows(runner, ids, scoring_windows(kTargets, tokens, tokens), [](const ScoringState&) {});
  return losses;
}

double root_mean_square_difference(std::span<const float> a, std::span<const float> b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares / static_cast<double>(a.size()));
}

// A unit is what values around 1 differ by: 2^-8 of them in bf16, 2^-11 in fp16. Logits here are of size 1, and what
// one is off by is the sum of roundings at random signs, each of half a unit at most: of the weights, of ten
// activations a layer that a token's stream passes, of the logit. Four units are the root of sixty such squares; eight
// times fewer are fp16's, so that it does not pass with bf16's bits. The mean over 600 targets is known 24 times
// better: half a unit is three standard deviations of it.
TEST(EvaluationPrecision, SixteenBitsMoveLossesByWhatTheyRound) {
  const Losses exact = losses_in(DType::kF32);
  ASSERT_GT(std::abs(exact.sum / kTargets - std::log(90)), 0.1) << "a model that knows nothing has nothing to lose";
  for (const auto& [dtype, unit] : kTypes) {
    const Losses losses = losses_in(dtype);
    const double off = root_mean_square_difference(losses.each, exact.each);
    EXPECT_GT(off, unit / 8) << name_of(dtype) << " is not what was computed in";
    EXPECT_LT(off, 4 * unit) << name_of(dtype);
    EXPECT_NEAR(losses.sum / kTargets, exact.sum / kTargets, unit / 2) << name_of(dtype);
  }
}

// Logits of a prompt in two pieces, the second on the cache of the first.
TEST(GenerationPrecision, SixteenBitsMoveLogitsByWhatTheyRound) {
  const auto next_logits = [](DType dtype) {
    const auto backend = make_cpu_backend({.compute_dtype = dtype});
    LanguageModel runner(*backend, config(), {.purpose = Purpose::kGeneration, .tokens = 4});
    runner.allocate();
    runner.initialize(5);
    std::vector<float> logits(static_cast<std::size_t>(config().vocab_size));
    const std::vector<std::int32_t> text = {3, 1, 4, 1, 5, 9, 2, 6};
    runner.logits(std::span(text).first(4), 0, 1, logits);
    runner.logits(std::span(text).last(4), 4, 1, logits);
    return logits;
  };
  const std::vector<float> exact = next_logits(DType::kF32), zeros(exact.size());
  const double size = root_mean_square_difference(exact, zeros);
  for (const auto& [dtype, unit] : kTypes) {
    const double off = root_mean_square_difference(next_logits(dtype), exact) / size;
    EXPECT_GT(off, unit / 8) << name_of(dtype) << " is not what was computed in";
    EXPECT_LT(off, 4 * unit) << name_of(dtype);
  }
}

}  // namespace
}  // namespace teratron::testing
