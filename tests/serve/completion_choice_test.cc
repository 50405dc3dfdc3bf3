// Choice of tokens by biases and penalties, and of texts by best_of, over loopback.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "serve/served_texts.h"
#include "serve/text/completion_answer.h"

namespace teratron::testing {
namespace {

TEST(CompletionChoice, BiasesAndPenaltiesAreThoseOfGenerate) {
  const TextServer texts;
  std::mt19937 random(4);
  for (int trial = 0; trial < 8; ++trial) {
    const auto draw = [&] { return static_cast<double>(random() % 5) - 2; };
    GenerationSettings settings{.max_new_tokens = 20};
    settings.sampling = {.seed = random() % 1000, .presence_penalty = draw(), .frequency_penalty = draw()};
    Json biases = Json::object();
    for (std::size_t count = random() % 3; count-- > 0;) {
      const auto token = static_cast<std::int32_t>(random() % 267);
      const double bias = 50 * draw();
      if (biases.contains(std::to_string(token))) continue;
      biases[std::to_string(token)] = bias;
      settings.sampling.biases.push_back({.token = token, .bias = bias});
    }
    const Reply reply = texts.server.complete({{"prompt", "the rank"},
                                               {"max_tokens", 20},
                                               {"seed", settings.sampling.seed},
                                               {"presence_penalty", settings.sampling.presence_penalty},
                                               {"frequency_penalty", settings.sampling.frequency_penalty},
                                               {"logit_bias", biases}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.choice().at("text"), texts.generate({"the rank"}, 1, settings).front().text) << trial;
  }
  const std::string id = std::to_string(texts.tokenizer.encode("x").front());
  const Reply forced = texts.server.complete({{"prompt", "a"}, {"max_tokens", 4}, {"logit_bias", {{id, 100}}}});
  EXPECT_EQ(forced.choice().at("text"), "xxxx");
}

TEST(CompletionChoice, TheBestAreThoseWithTheHighestMeanLogProbability) {
  const TextServer texts;
  const std::vector<std::string> prompts = {"the rank", "a"};
  // Some texts end early, so that sums and means have other orders.
  const std::string end = std::to_string(*texts.tokenizer.end_of_text());
  Json request = {{"prompt", prompts}, {"max_tokens", 12},        {"seed", 3}, {"n", 6},
                  {"logprobs", 0},     {"logit_bias", {{end, 7}}}};
  const Reply all = texts.server.complete(request);
  request["best_of"] = 6;
  request["n"] = 2;
  const Reply best = texts.server.complete(request);
  ASSERT_EQ(best.status, 200) << best.body;
  ASSERT_EQ(best.json.at("choices").size(), 4U);
  EXPECT_EQ(best.json.at("usage").at("completion_tokens"), all.json.at("usage").at("completion_tokens"));
  for (std::size_t prompt = 0; prompt < 2; ++prompt) {
    std::vector<std::pair<double, Json>> candidates;
    std::set<std::size_t> lengths;
    for (std::size_t i = 6 * prompt; i < 6 * prompt + 6; ++i) {
      const Json& values = all.choice(i).at("logprobs").at("token_logprobs");
      double sum = 0;
      for (const Json& value : values) sum += value.get<double>();
      lengths.insert(values.size());
      candidates.emplace_back(values.empty() ? -1e9 : sum / static_cast<double>(values.size()), all.choice(i));
    }
    EXPECT_GT(lengths.size(), 1U);
    std::ranges::stable_sort(candidates, std::greater(), &std::pair<double, Json>::first);
    for (std::size_t i = 0; i < 2; ++i) {
      Json expected = candidates[i].second;
      expected["index"] = 2 * prompt + i;
      EXPECT_EQ(best.choice(2 * prompt + i), expected);
    }
  }
  request.erase("logprobs");
  const Reply unscored = texts.server.complete(request);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(unscored.choice(i).at("text"), best.choice(i).at("text"));
    EXPECT_TRUE(unscored.choice(i).at("logprobs").is_null());
  }
}

// Llama 2's vocabulary has A and <0x41>.
TEST(CompletionScores, OfTokensWithTheSameBytesAreToldApart) {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  model.tokens.emplace_back("A");
  model.special = {256};
  const Tokenizer tokenizer(model);
  const TokenScore letter{.token = 'A', .log_probability = -1}, twin{.token = 256, .log_probability = -2},
      other{.token = 'B', .log_probability = -3};
  const auto top = [&](const TokenScore& chosen) {
    const CompletionRequest request{.prompts = {{1}},
                                    .prompt_texts = {"x"},
                                    .stop_texts = {},
                                    .settings = {.log_probabilities = true},
                                    .alternatives = 2};
    CompletionAnswer answer(request, tokenizer, {.id = "i", .model = "m"});
    answer.add({.prompt = {},
                .token = GeneratedToken{.chosen = chosen, .likeliest = {letter, twin}},
                .bytes = std::string(tokenizer.bytes_of(chosen.token)),
                .end = GenerationEnd::kLength,
                .failure = {}});
    return Json::parse(answer.whole().dump()).at("choices").at(0).at("logprobs").at("top_logprobs").at(0);
  };
  EXPECT_EQ(top(letter), (Json{{"A", -1}, {"bytes:\\x41", -2}}));
  EXPECT_EQ(top(twin), (Json{{"A", -2}, {"bytes:\\x41", -1}}));
  EXPECT_EQ(top(other), (Json{{"A", -1}, {"bytes:\\x41", -2}, {"B", -3}}));
}

}  // namespace
}  // namespace teratron::testing
