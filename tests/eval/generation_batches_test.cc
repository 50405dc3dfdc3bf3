// Texts that are generated together are those that are generated alone, bit for bit, whatever they are with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/trials.h"
#include "comm/launch.h"
#include "eval/generation/generation.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

struct MadeText {
  std::vector<std::int32_t> tokens;
  std::vector<double> log_probabilities, prompt_log_probabilities;
  GenerationEnd end = GenerationEnd::kLength;
  std::int64_t moves = -1;
  bool operator==(const MadeText&) const = default;
};

ModelConfig config_of_batches() {
  ModelConfig config = small_config();
  config.hidden_size = 32;
  config.num_attention_heads = 4;
  config.max_position_embeddings = 24;
  return config;
}

std::vector<GenerationRequest> random_requests(std::mt19937& random, std::size_t count, std::size_t longest) {
  std::vector<GenerationRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    requests[i] = {.number = static_cast<std::uint32_t>(i), .sample = static_cast<std::uint32_t>(random() % 3)};
    for (std::size_t length = 1 + random() % longest; length-- > 0;) {
      requests[i].prompt.push_back(
          static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(config_of_batches().vocab_size)));
    }
    if (i > 0 && random() % 4 == 0) requests[i].prompt = requests[i - 1].prompt;  // as other samples have it
  }
  return requests;
}

// `ends`: a text stops after a token if this divides the next one.
std::vector<MadeText> make_texts(LanguageModel& runner, std::span<const GenerationRequest> requests,
                                 const GenerationSettings& settings, std::int32_t ends) {
  std::vector<MadeText> texts(requests.size());
  generate_all(runner, requests, settings,
               {.prompt =
                    [&](std::size_t i, std::span<const double> values) {
                      texts[i].prompt_log_probabilities.assign(values.begin(), values.end());
                    },
                .token =
                    [&](std::size_t i, std::int32_t token, double log_probability) {
                      texts[i].tokens.push_back(token);
                      if (settings.log_probabilities) texts[i].log_probabilities.push_back(log_probability);
                      return (token + 1) % ends != 0;
                    },
                .finished =
                    [&](std::size_t i, GenerationEnd end, std::int64_t moves) {
                      EXPECT_EQ(texts[i].moves, -1) << "once";
                      texts[i].end = end;
                      texts[i].moves = moves;
                    }});
  return texts;
}

std::vector<MadeText> make_texts_in(const MeshShape& shape, const ExecutorOptions& options, DType dtype,
                                    std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                                    std::int32_t ends) {
  std::vector<std::vector<MadeText>> results(static_cast<std::size_t>(shape.ranks()));
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto backend = make_cpu_backend({.compute_dtype = dtype});
    LanguageModel runner(*backend, config_of_batches(), options, std::make_shared<Mesh>(make_mesh(world, shape)));
    runner.allocate();
    runner.initialize(5);
    results[static_cast<std::size_t>(world.rank())] = make_texts(runner, requests, settings, ends);
  });
  for (const std::vector<MadeText>& result : results) EXPECT_EQ(result, results.front()) << "all ranks make the same";
  return results.front();
}

GenerationSettings random_settings(std::mt19937& random) {
  GenerationSettings settings{.max_new_tokens = static_cast<std::int64_t>(random() % 30)};
  settings.sampling = {.temperature = static_cast<double>(random() % 3) / 2,
                       .top_k = static_cast<std::int64_t>(random() % 2 * 10),
                       .top_p = random() % 2 == 0 ? 1 : 0.9,
                       .seed = random(),
                       .repetition_penalty = random() % 2 == 0 ? 1 : 1.2,
                       .presence_penalty = random() % 2 == 0 ? 0 : 0.8,
                       .frequency_penalty = random() % 2 == 0 ? 0 : 1.1};
  if (random() % 2 == 0) settings.sampling.biases = {{.token = 5, .bias = 1.5}, {.token = 2, .bias = -100}};
  if (random() % 2 == 0) settings.stop = 3;
  settings.log_probabilities = random() % 2 == 0;
  settings.prompt_log_probabilities = random() % 3 == 0;
  return settings;
}

// The tensor-parallel layout sums in another order than one rank, but always the same.
TEST(GenerationBatches, HaveTheBitsOfTextsMadeAloneInAnyLayoutAndPrecision) {
  std::mt19937 random(1);
  const std::vector<MeshShape> layouts = {
      {}, {}, {.tensor = 2}, {.tensor = 4}, {.pipeline = 2}, {.tensor = 2, .pipeline = 2}};
  for (int trial = 0; trial < trials(40); ++trial) {
    const MeshShape shape = layouts[random() % layouts.size()];
    const DType dtype = random() % 4 == 0 ? DType::kBF16 : DType::kF32;
    const auto requests = random_requests(random, 1 + random() % 12, 24);
    const GenerationSettings settings = random_settings(random);
    const auto ends = static_cast<std::int32_t>(random() % 2 == 0 ? 1000000 : 11);
    const auto options = [&](std::int64_t caches, std::int64_t tokens) {
      return ExecutorOptions{.purpose = Purpose::kGeneration,
                             .tokens = tokens,
                             .caches = caches,
                             .cache_tokens = cache_tokens_for(requests, settings, config_of_batches()),
                             .logits_chunk = 1 + static_cast<std::int64_t>(random() % 4)};
    };
    const std::int64_t piece = 1 + random() % 8;
    const auto caches = static_cast<std::int64_t>(1 + random() % 8);
    const std::vector<MadeText> together =
        make_texts_in(shape, options(caches, piece), dtype, requests, settings, ends);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::vector<MadeText> alone =
          make_texts_in(shape, options(1, piece), dtype, {&requests[i], 1}, settings, ends);
      ASSERT_EQ(together[i].tokens, alone.front().tokens) << "trial " << trial << " request " << i;
      ASSERT_EQ(together[i], alone.front()) << "trial " << trial << " request " << i;
      if (settings.max_new_tokens > 0) {
        EXPECT_GE(together[i].moves, 0);
      }
    }
  }
}

// By another way: no cache, all of the context again for each token.
TEST(GenerationBatches, GiveTheTokensAndProbabilitiesOfTheDefinition) {
  const auto backend = make_reference_backend(DType::kF64);
  LanguageModel runner(*backend, config_of_batches(),
                       {.purpose = Purpose::kGeneration, .tokens = 5, .caches = 3, .logits_chunk = 2});
  LanguageModel slow(*backend, config_of_batches(), {.purpose = Purpose::kEvaluation, .tokens = 24});
  for (LanguageModel* const model : {&runner, &slow}) {
    model->allocate();
    model->initialize(5);
  }
  std::mt19937 random(2);
  const auto requests = random_requests(random, 7, 16);
  constexpr double kPresence = 0.2, kFrequency = 0.15;
  const GenerationSettings settings{.sampling = {.temperature = 0,
                                                 .repetition_penalty = 1.3,
                                                 .presence_penalty = kPresence,
                                                 .frequency_penalty = kFrequency,
                                                 .biases = {{.token = 7, .bias = 0.4}}},
                                    .max_new_tokens = 8,
                                    .log_probabilities = true,
                                    .prompt_log_probabilities = true};
  const std::vector<MadeText> made = make_texts(runner, requests, settings, 1000000);
  std::vector<float> logits(static_cast<std::size_t>(slow.config().vocab_size));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::vector<std::int32_t> text = requests[i].prompt;
    text.insert(text.end(), made[i].tokens.begin(), made[i].tokens.end());
    std::vector<double> scores = made[i].prompt_log_probabilities;
    scores.insert(scores.end(), made[i].log_probabilities.begin(), made[i].log_probabilities.end());
    ASSERT_EQ(text.size(), requests[i].prompt.size() + 8);
    ASSERT_EQ(scores.size(), text.size() - 1);
    for (std::size_t end = 1; end < text.size(); ++end) {
      slow.logits(std::span(text).first(end), 0, 1, logits);
      EXPECT_NEAR(scores[end - 1], log_probability(logits, text[end]), 1e-5);  // fp32 logits of size 1
      const std::size_t prompt = requests[i].prompt.size();
      if (end < prompt) continue;
      logits[7] += 0.4F;
      penalize_repetition(logits, std::span(text).first(end), 1.3);
      for (std::size_t token = 0; token < logits.size(); ++token) {
        const auto count =
            std::count(text.begin() + std::ssize(requests[i].prompt), text.begin() + static_cast<std::ptrdiff_t>(end),
                       static_cast<std::int32_t>(token));
        if (count > 0) logits[token] -= static_cast<float>(static_cast<double>(count) * kFrequency + kPresence);
      }
      EXPECT_EQ(text[end], std::max_element(logits.begin(), logits.end()) - logits.begin());
    }
  }
}

TEST(GenerationBatches, SayThatTheContextMovedAndHowOften) {
  const auto backend = make_cpu_backend();
  LanguageModel runner(*backend, config_of_batches(),
                       {.purpose = Purpose::kGeneration, .tokens = 5, .caches = 4, .logits_chunk = 1});
  runner.allocate();
  runner.initialize(5);
  // 24 positions: a move leaves 12 tokens, so it comes with the 25th token of a text that is continued, and then with
  // every 13th.
  for (const auto& [prompt, made, moves] : std::vector<std::array<std::int64_t, 3>>{
           {24, 1, 0}, {24, 2, 1}, {1, 24, 0}, {1, 25, 1}, {1, 37, 1}, {1, 38, 2}}) {
    const GenerationRequest request{.prompt = std::vector<std::int32_t>(static_cast<std::size_t>(prompt), 1)};
    const auto texts = make_texts(runner, {&request, 1}, {.max_new_tokens = made}, 1000000);
    EXPECT_EQ(texts.front().moves, moves) << prompt << " and " << made;
    EXPECT_EQ(std::ssize(texts.front().tokens), made);
  }
}

TEST(GenerationBatches, TakeAsManyCachesAsTextsNeedAndMemoryAllows) {
  ModelConfig config;  // 12 layers of 768: 73728 bytes a token and cache in fp32
  config.num_layers = 12;
  config.hidden_size = 768;
  EXPECT_EQ(choose_caches(3, 100, config, 4), 3);
  EXPECT_EQ(choose_caches(1000, 100, config, 4), 32);
  EXPECT_EQ(choose_caches(1000, 1024, config, 4), 14);
  EXPECT_EQ(choose_caches(1000, 1024, config, 2), 28);
  EXPECT_EQ(choose_caches(1000, 100000, config, 4), 1);
}

}  // namespace
}  // namespace teratron::testing
