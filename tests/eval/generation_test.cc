#include "eval/generation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "model/random_batch.h"

namespace teratron {
namespace {

TEST(Sampling, TemperatureZeroAndTopOneAreGreedy) {
  const std::vector<float> logits = {0.5F, 3, -1, 3};
  for (int position = 0; position < 50; ++position) {
    EXPECT_EQ(sample_token(logits, {.temperature = 0}, position), 1);
    EXPECT_EQ(sample_token(logits, {.top_k = 1}, position), 1);
    EXPECT_EQ(sample_token(logits, {.top_p = 1e-9}, position), 1);
  }
}

TEST(Sampling, FrequenciesFollowTheCutDistribution) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.25F), std::log(0.15F), std::log(0.1F)};
  const auto frequencies = [&](const SamplingSettings& settings) {
    std::vector<double> counts(4);
    for (int position = 0; position < 40000; ++position)
      counts[static_cast<std::size_t>(sample_token(logits, settings, position))] += 1.0 / 40000;
    return counts;
  };
  // Four standard deviations of a binomial share of 40000 draws are at most 0.01.
  const auto expect_near = [](const std::vector<double>& actual, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(actual[i], expected[i], 0.01) << i;
  };
  expect_near(frequencies({}), {0.5, 0.25, 0.15, 0.1});
  expect_near(frequencies({.top_k = 2}), {2.0 / 3, 1.0 / 3, 0, 0});
  expect_near(frequencies({.top_p = 0.8}), {0.5 / 0.9, 0.25 / 0.9, 0.15 / 0.9, 0});
  expect_near(frequencies({.temperature = 0.5}), {0.25 / 0.345, 0.0625 / 0.345, 0.0225 / 0.345, 0.01 / 0.345});
}

TEST(Sampling, ValuesOutOfRangeAreAllNamed) {
  EXPECT_TRUE(SamplingSettings{}.faults().empty());
  EXPECT_EQ((SamplingSettings{.temperature = -1, .top_k = -1, .top_p = 0}.faults().size()), 3U);
}

// Greedy generation by definition: the whole window through the model for every token.
std::vector<std::int32_t> generate_slowly(LanguageModel& runner, std::vector<std::int32_t> text, int count) {
  std::vector<float> logits(static_cast<std::size_t>(runner.config().vocab_size));
  std::vector<std::int32_t> made;
  for (int i = 0; i < count; ++i) {
    runner.logits(text, 0, 1, logits);
    made.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    text.push_back(made.back());
  }
  return made;
}

TEST(Generation, CacheGivesTheTokensOfTheDefinition) {
  const auto backend = make_reference_backend(DType::kF64);
  ModelConfig config = test::small_config();
  config.max_position_embeddings = 24;
  LanguageModel cached(*backend, config, {.purpose = Purpose::kGeneration, .tokens = 3});
  LanguageModel slow(*backend, config, {.purpose = Purpose::kEvaluation, .tokens = 24});
  for (LanguageModel* runner : {&cached, &slow}) {
    runner->allocate();
    runner->initialize(5);
  }
  const std::vector<std::int32_t> prompt = {3, 1, 4, 1, 5};
  std::vector<std::int32_t> made;
  EXPECT_EQ(generate(cached, prompt, {.sampling = {.temperature = 0}, .max_new_tokens = 18},
                     [&](std::int32_t token) { made.push_back(token); }),
            18);
  EXPECT_EQ(made, generate_slowly(slow, prompt, 18));
}

TEST(Generation, GoesOnPastTheLastPositionAndStopsAtEndOfText) {
  const auto backend = make_reference_backend(DType::kF32);
  const ModelConfig config = test::small_config();  // 9 positions
  LanguageModel runner(*backend, config, {.purpose = Purpose::kGeneration, .tokens = 4});
  runner.allocate();
  runner.initialize(5);
  std::vector<std::int32_t> made;
  const std::vector<std::int32_t> prompt(30, 2);  // longer than the positions there are
  EXPECT_EQ(generate(runner, prompt, {.max_new_tokens = 40}, [&](std::int32_t token) { made.push_back(token); }), 40);
  const auto stop = made[7];
  const auto before = std::find(made.begin(), made.end(), stop) - made.begin();
  EXPECT_EQ(generate(runner, prompt, {.max_new_tokens = 40, .stop = stop}, [](std::int32_t) {}), before);
}

}  // namespace
}  // namespace teratron
