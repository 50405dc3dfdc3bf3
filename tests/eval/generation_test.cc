#include "eval/generation/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(Sampling, ALogitThatIsNotFiniteIsRefusedWhereverItStands) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < 4; ++at) {
      std::vector<float> logits = {0.5F, 3, -1, 2};
      logits[at] = wrong;
      EXPECT_THROW(sample_token(logits, {}, 1), UserError);
    }
  }
}

TEST(Sampling, ValuesOutOfRangeAreAllNamed) {
  EXPECT_TRUE(SamplingSettings{}.faults().empty());
  EXPECT_EQ((SamplingSettings{.temperature = -1, .top_k = -1, .top_p = 0}.faults().size()), 3U);
}

TEST(Sampling, PenaltiesWithWhichLogitsOverflowAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {-1.0, 0.0, 1e-38, 9e-4, 1100.0, 1e38, infinity, nan}) {
    EXPECT_EQ(SamplingSettings{.repetition_penalty = wrong}.faults().size(), 1U) << wrong;
  }
  constexpr float kLargest = 1e35F;  // logits of a model that is not damaged are far smaller
  for (const double right : {kLeastPenalty, kMostPenalty}) {
    const SamplingSettings settings{.repetition_penalty = right};
    EXPECT_TRUE(settings.faults().empty());
    std::vector<float> logits = {kLargest, -kLargest, 0};
    penalize_repetition(logits, std::vector<std::int32_t>{0, 1, 2}, right);
    EXPECT_NO_THROW(sample_token(logits, settings, 1)) << right;
  }
}

TEST(Sampling, AdditivePenaltiesBeyondTwoAreRefused) {
  for (const double wrong : {-2.1, 2.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ((SamplingSettings{.presence_penalty = wrong, .frequency_penalty = wrong}.faults().size()), 2U) << wrong;
  }
  EXPECT_TRUE((SamplingSettings{.presence_penalty = -2, .frequency_penalty = 2}.faults().empty()));
}

// mu[j] - c[j] * frequency - (c[j] > 0) * presence, where c counts what was generated and not the prompt.
TEST(Sampling, PresenceAndFrequencyCountWhatWasGenerated) {
  const std::vector<std::int32_t> text = {0, 0, 4, 1, 2, 1, 1};
  std::vector<float> logits = {1, 2, 3, 4, 5};
  adjust_logits(logits, {.presence_penalty = 0.25, .frequency_penalty = 0.5}, text, 3);
  EXPECT_THAT(logits, ElementsAre(1, 2 - 3 * 0.5 - 0.25, 3 - 0.5 - 0.25, 4, 5));
  logits = {1, 2, 3, 4, 5};
  adjust_logits(logits, {.presence_penalty = -1}, text, 3);
  EXPECT_THAT(logits, ElementsAre(1, 3, 4, 4, 5));
}

TEST(Sampling, BiasesComeBeforePenalties) {
  std::vector<float> logits = {1, 2, -3};
  adjust_logits(
      logits,
      {.repetition_penalty = 2, .presence_penalty = 1, .biases = {{.token = 2, .bias = 7}, {.token = 0, .bias = -1}}},
      std::vector<std::int32_t>{1, 2}, 1);
  EXPECT_THAT(logits, ElementsAre(0, 1, (-3 + 7) / 2 - 1));
}

// Draws of an adjusted row beside its exact probabilities: chi-square of 3 degrees of freedom, the 99.99 % point.
TEST(Sampling, DrawsFollowTheAdjustedDistribution) {
  const SamplingSettings settings{
      .temperature = 0.7, .presence_penalty = 0.3, .frequency_penalty = -0.4, .biases = {{.token = 3, .bias = 1.2}}};
  std::vector<float> logits = {0.5F, 0, -0.5F, -1};
  const double expected[] = {0.5, -0.3 + 2 * 0.4, -0.5, -1 + 1.2 - 0.3 + 0.4};
  adjust_logits(logits, settings, std::vector<std::int32_t>{0, 1, 3, 1}, 1);
  constexpr int kDraws = 40000;
  std::array<double, 4> counts{};
  for (int position = 0; position < kDraws; ++position) {
    ++counts[static_cast<std::size_t>(sample_token(logits, settings, position))];
  }
  double total = 0, distance = 0;
  for (const double logit : expected) total += std::exp(logit / 0.7);
  for (std::size_t token = 0; token < 4; ++token) {
    const double mean = kDraws * std::exp(expected[token] / 0.7) / total;
    distance += (counts[token] - mean) * (counts[token] - mean) / mean;
  }
  EXPECT_LT(distance, 21.1);
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
  ModelConfig config = small_config();
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

// A vocabulary that is padded to more rows than the tokenizer has tokens, which those rows would win.
TEST(Generation, RowsWithoutATokenAreAsIfTheyWereNotThere) {
  constexpr std::int64_t kTokenizer = 11;
  const auto backend = make_reference_backend(DType::kF32);
  ModelConfig config = small_config();  // 19 rows
  config.max_position_embeddings = 40;
  LanguageModel model(*backend, config, {.purpose = Purpose::kGeneration, .tokens = 4, .caches = 3});
  LanguageModel whole(*backend, config, {.purpose = Purpose::kEvaluation, .tokens = 40});
  for (LanguageModel* one : {&model, &whole}) {
    one->allocate();
    one->initialize(5);
  }
  const std::vector<GenerationRequest> requests = {{.prompt = {3, 1, 4}}, {.prompt = {10}, .number = 1}};
  const auto highest = [&](const GenerationSettings& settings) {
    std::int32_t most = 0;
    const auto token = [&](std::size_t, std::int32_t id, double) {
      most = std::max(most, id);
      return true;
    };
    generate_all(model, requests, settings, {.prompt = {}, .token = token, .finished = [](auto...) {}});
    return most;
  };
  EXPECT_GE(highest({.max_new_tokens = 30}), kTokenizer) << "the rows are likely";
  for (const SamplingSettings& sampling :
       std::vector<SamplingSettings>{{.temperature = 0},
                                     {},
                                     {.temperature = 3},
                                     {.top_k = 5},
                                     {.top_p = 0.5},
                                     {.temperature = 0, .repetition_penalty = 1.5}}) {
    EXPECT_LT(highest({.sampling = sampling, .max_new_tokens = 30, .tokens = kTokenizer}), kTokenizer);
  }
  // Draws and probabilities by definition: those rows cut off from the logits of the whole text.
  std::map<std::size_t, std::vector<std::int32_t>> texts;
  std::map<std::size_t, std::vector<double>> scores;
  generate_all(model, requests,
               {.sampling = {.top_k = 4, .seed = 7},
                .max_new_tokens = 20,
                .tokens = kTokenizer,
                .log_probabilities = true,
                .prompt_log_probabilities = true},
               {.prompt = [&](std::size_t request,
                              std::span<const double> values) { scores[request].assign(values.begin(), values.end()); },
                .token =
                    [&](std::size_t request, std::int32_t id, double score) {
                      texts[request].push_back(id);
                      scores[request].push_back(score);
                      return true;
                    },
                .finished = [](auto...) {}});
  std::vector<float> logits(static_cast<std::size_t>(config.vocab_size));
  const auto own = std::span(logits).first(kTokenizer);
  for (std::size_t request = 0; request < requests.size(); ++request) {
    std::vector<std::int32_t> text = requests[request].prompt;
    const std::size_t prompt = text.size();
    text.insert(text.end(), texts[request].begin(), texts[request].end());
    ASSERT_EQ(scores[request].size(), text.size() - 1);
    for (std::size_t at = 1; at < text.size(); ++at) {
      whole.logits(std::span(text).first(at), 0, 1, logits);
      if (at >= prompt) {
        EXPECT_EQ(text[at], sample_token(own, {.top_k = 4, .seed = 7},
                                         {.position = static_cast<std::int64_t>(at),
                                          .prompt = static_cast<std::uint32_t>(request)}));
      }
      double sum = 0;
      for (const float logit : own) sum += std::exp(static_cast<double>(logit));
      EXPECT_NEAR(scores[request][at - 1],
                  static_cast<double>(logits[static_cast<std::size_t>(text[at])]) - std::log(sum), 1e-5);
    }
  }
}

TEST(Generation, GoesOnPastTheLastPositionAndStopsAtEndOfText) {
  const auto backend = make_reference_backend(DType::kF32);
  const ModelConfig config = small_config();  // 9 positions
  LanguageModel runner(*backend, config, {.purpose = Purpose::kGeneration, .tokens = 4});
  runner.allocate();
  runner.initialize(5);
  std::vector<std::int32_t> made;
  const std::vector<std::int32_t> prompt(9, 2);
  EXPECT_EQ(generate(runner, prompt, {.max_new_tokens = 40}, [&](std::int32_t token) { made.push_back(token); }), 40);
  const auto stop = made[7];
  const auto before = std::find(made.begin(), made.end(), stop) - made.begin();
  EXPECT_EQ(generate(runner, prompt, {.max_new_tokens = 40, .stop = stop}, [](std::int32_t) {}), before);
}

TEST(Generation, RefusesAPromptLongerThanTheContextWithBothLengths) {
  const auto backend = make_reference_backend(DType::kF32);
  LanguageModel runner(*backend, small_config(), {.purpose = Purpose::kGeneration, .tokens = 4});
  const std::vector<std::int32_t> prompt(10, 2);
  EXPECT_THAT(message_of<UserError>([&] { generate(runner, prompt, {}, [](std::int32_t) {}); }),
              AllOf(HasSubstr("10 tokens"), HasSubstr("holds 9")));
}

TEST(Generation, CutsAPromptWhereAsked) {
  const auto fitted = [](LongPrompt rule, std::int64_t positions, std::optional<std::int32_t> beginning = {}) {
    std::vector<std::int32_t> prompt = {1, 2, 3, 4, 5};
    const std::int64_t lost = fit_prompt(prompt, positions, rule, beginning, "prompt 7");
    EXPECT_EQ(lost, std::max<std::int64_t>(0, 5 - positions));
    return prompt;
  };
  EXPECT_THAT(fitted(LongPrompt::kCutLeft, 3), ElementsAre(3, 4, 5));
  EXPECT_THAT(fitted(LongPrompt::kCutRight, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(fitted(LongPrompt::kCutLeft, 3, 1), ElementsAre(1, 4, 5)) << "the beginning of every text stays";
  EXPECT_THAT(fitted(LongPrompt::kCutLeft, 3, 2), ElementsAre(3, 4, 5));
  EXPECT_THAT(fitted(LongPrompt::kCutLeft, 1, 1), ElementsAre(5));
  for (const LongPrompt rule : {LongPrompt::kRefuse, LongPrompt::kCutLeft, LongPrompt::kCutRight}) {
    EXPECT_THAT(fitted(rule, 5), ElementsAre(1, 2, 3, 4, 5));
  }
  EXPECT_THAT(message_of<UserError>([&] { fitted(LongPrompt::kRefuse, 3); }),
              AllOf(HasSubstr("prompt 7 has 5 tokens"), HasSubstr("holds 3"), HasSubstr("--truncate-prompt")));
}

TEST(Sampling, DrawsOfOtherPromptsAndSamplesAreOthers) {
  const std::vector<float> logits(1000, 0.0F);
  std::set<std::vector<std::int32_t>> texts;
  for (std::uint32_t prompt = 0; prompt < 10; ++prompt) {
    for (std::uint32_t sample = 0; sample < 10; ++sample) {
      std::vector<std::int32_t> text;
      for (std::int64_t position = 0; position < 3; ++position) {
        const DrawIndex index{.position = position, .prompt = prompt, .sample = sample};
        text.push_back(sample_token(logits, {}, index));
        EXPECT_EQ(text.back(), sample_token(logits, {}, index)) << "a pure function";
      }
      texts.insert(text);
    }
  }
  EXPECT_EQ(texts.size(), 100U);  // of 10^9 texts, two are the same by chance with probability 5e-6
}

// Cut distributions by definition: sorted, the first that reach p.
TEST(Sampling, DrawsOnlyFromTheNucleusAndFromAllOfIt) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<float> logits(2 + random() % 12);
    for (float& logit : logits) logit = normal(random);
    const SamplingSettings settings{.top_k = static_cast<std::int64_t>(random() % 6),
                                    .top_p = 0.05 + 0.9 * static_cast<double>(random() % 1000) / 1000};
    std::vector<std::int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, std::greater(), [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; });
    if (settings.top_k > 0 && settings.top_k < std::ssize(order))
      order.resize(static_cast<std::size_t>(settings.top_k));
    const auto weight = [&](std::int32_t id) { return std::exp(double{logits[static_cast<std::size_t>(id)]}); };
    double total = 0, mass = 0;
    for (const std::int32_t id : order) total += weight(id);
    std::map<std::int32_t, double> expected;
    for (const std::int32_t id : order) {
      if (mass >= settings.top_p * total) break;
      mass += weight(id);
      expected[id] = weight(id);
    }
    std::map<std::int32_t, double> counts;
    constexpr int kDraws = 4000;
    for (int position = 0; position < kDraws; ++position)
      counts[sample_token(logits, settings, position)] += 1.0 / kDraws;
    for (const auto& [id, share] : counts) EXPECT_TRUE(expected.contains(id)) << id;
    // Five standard deviations of a binomial share.
    for (const auto& [id, share] : expected) EXPECT_NEAR(counts[id], share / mass, 5 * 0.5 / std::sqrt(kDraws)) << id;
  }
}

TEST(Sampling, PenalizesRepetitionAsHuggingFaceDoes) {
  const std::string file = TERATRON_SOURCE_DIR "/tests/golden/repetition/penalized.json";
  const nlohmann::json golden = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(golden.at("cases").size(), 20U);
  for (const nlohmann::json& one : golden.at("cases")) {
    auto logits = one.at("logits").get<std::vector<float>>();
    const auto text = one.at("text").get<std::vector<std::int32_t>>();
    penalize_repetition(logits, text, one.at("penalty").get<double>());
    const auto expected = one.at("penalized").get<std::vector<float>>();
    for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_FLOAT_EQ(logits[i], expected[i]) << one.dump();
  }
}

TEST(Sampling, LogProbabilitiesAreThoseOfTheSoftmax) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.25F), std::log(0.25F)};
  for (const float shift : {0.0F, 200.0F, -200.0F}) {  // where single exponentials overflow
    std::vector<float> moved = logits;
    for (float& logit : moved) logit += shift;
    EXPECT_NEAR(log_probability(moved, 0), std::log(0.5), 1e-4);  // fp32 steps at 200 are 1.5e-5
    EXPECT_NEAR(log_probability(moved, 2), std::log(0.25), 1e-4);
  }
}

}  // namespace
}  // namespace teratron::testing
