// Texts of requests that come, end and are cancelled at any time are those that are generated alone, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "eval/generation/generator.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

ModelConfig config_of_requests() {
  ModelConfig config = small_config();
  config.hidden_size = 32;
  config.num_attention_heads = 4;
  config.max_position_embeddings = 24;
  return config;
}

struct RequestedText {
  std::vector<std::int32_t> tokens, likeliest;
  std::vector<double> scores, prompt_scores;
  std::optional<GenerationEnd> end;
  bool operator==(const RequestedText&) const = default;
};

// Model with caches, and the texts that its generator makes.
class Requests {
 public:
  explicit Requests(std::int64_t caches, std::int64_t piece, const GeneratorLimits& limits)
      : model_(*backend_, config_of_requests(),
               {.purpose = Purpose::kGeneration, .tokens = piece, .caches = caches, .logits_chunk = 3}) {
    model_.allocate();
    model_.initialize(5);
    generator.emplace(
        model_, limits,
        GeneratorEvents{.prompt =
                            [this](std::int64_t id, const std::vector<GeneratedToken>& tokens) {
                              if (unwanted.contains(id)) generator->cancel(id);
                              for (const GeneratedToken& token : tokens) {
                                text(id).prompt_scores.push_back(token.chosen.log_probability);
                                note_likeliest(id, token);
                              }
                            },
                        .token =
                            [this](std::int64_t id, const GeneratedToken& token) {
                              text(id).tokens.push_back(token.chosen.token);
                              text(id).scores.push_back(token.chosen.log_probability);
                              note_likeliest(id, token);
                              return true;
                            },
                        .finished = [this](std::int64_t id, GenerationEnd end, std::int64_t) { text(id).end = end; },
                        .read =
                            [this](std::int64_t id, std::int64_t) {
                              if (unwanted.contains(id)) generator->cancel(id);
                            }});
  }

  RequestedText& text(std::int64_t id) {
    texts_.resize(std::max(texts_.size(), static_cast<std::size_t>(id) + 1));
    return texts_[static_cast<std::size_t>(id)];
  }

  std::optional<Generator> generator;
  std::set<std::int64_t> unwanted;  // cancelled by their first event

 private:
  void note_likeliest(std::int64_t id, const GeneratedToken& token) {
    for (const TokenScore& score : token.likeliest) text(id).likeliest.push_back(score.token);
    if (!token.likeliest.empty()) {
      EXPECT_GE(token.likeliest.front().log_probability, token.chosen.log_probability);
    }
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  LanguageModel model_;
  std::vector<RequestedText> texts_;
};

GeneratorRequest random_request(std::mt19937& random) {
  GeneratorRequest request;
  request.text = {.prompt = {}, .number = static_cast<std::uint32_t>(random() % 3), .sample = 0};
  for (std::size_t length = 1 + random() % 24; length-- > 0;) {
    request.text.prompt.push_back(static_cast<std::int32_t>(random() % 7));
  }
  if (random() % 3 == 0) request.text.prompt.assign(9, 2);  // as others have it
  if (random() % 2 == 0) {                                  // or their beginning
    const std::size_t alike = std::min<std::size_t>(request.text.prompt.size(), 1 + random() % 20);
    for (std::size_t i = 0; i < alike; ++i) request.text.prompt[i] = static_cast<std::int32_t>(i * i % 5);
  }
  request.settings.sampling = {.temperature = static_cast<double>(random() % 3) / 2,
                               .top_p = random() % 2 == 0 ? 1 : 0.9,
                               .seed = random(),
                               .repetition_penalty = random() % 2 == 0 ? 1 : 1.2,
                               .presence_penalty = random() % 2 == 0 ? 0 : -0.5,
                               .frequency_penalty = random() % 2 == 0 ? 0 : 0.9};
  if (random() % 2 == 0) request.settings.sampling.biases = {{.token = 4, .bias = 2}, {.token = 1, .bias = -3}};
  request.settings.max_new_tokens = static_cast<std::int64_t>(random() % 30);
  if (random() % 2 == 0) request.settings.stop = 3;
  request.settings.log_probabilities = true;
  request.settings.prompt_log_probabilities = random() % 3 == 0;
  request.alternatives = static_cast<std::int64_t>(random() % 3);
  return request;
}

TEST(Generator, TextsHaveTheBitsTheyHaveAloneWhateverComesAndGoes) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 25; ++trial) {
    const auto caches = static_cast<std::int64_t>(1 + random() % 5),
               piece = static_cast<std::int64_t>(1 + random() % 8);
    Requests together(caches, piece, {.queue = 40, .prompt_tokens_a_step = static_cast<std::int64_t>(random() % 10)});
    std::vector<GeneratorRequest> requests;
    std::vector<std::int64_t> cancelled;
    const std::size_t all = 1 + random() % 14;
    for (bool goes_on = true; goes_on || requests.size() < all;) {
      while (requests.size() < all && random() % 3 == 0) {
        requests.push_back(random_request(random));
        ASSERT_EQ(together.generator->submit(requests.back()), std::ssize(requests) - 1);
      }
      goes_on = together.generator->step();
      if (!requests.empty() && random() % 12 == 0) {
        cancelled.push_back(static_cast<std::int64_t>(random() % requests.size()));
        together.generator->cancel(cancelled.back());
      }
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto id = static_cast<std::int64_t>(i);
      Requests alone(1, piece, {.queue = 1});
      alone.generator->submit(requests[i]);
      while (alone.generator->step()) {
      }
      RequestedText expected = alone.text(0);
      const RequestedText& made = together.text(id);
      if (!made.end) {  // it ended before its end
        ASSERT_THAT(cancelled, ::testing::Contains(id)) << "trial " << trial;
        for (std::vector<double>* values : {&expected.scores}) values->resize(made.scores.size());
        expected.tokens.resize(made.tokens.size());
        ASSERT_EQ(made.tokens, expected.tokens) << "trial " << trial << " request " << i;
        ASSERT_EQ(made.scores, expected.scores) << "trial " << trial << " request " << i;
        continue;
      }
      ASSERT_EQ(made.tokens, expected.tokens) << "trial " << trial << " request " << i;
      ASSERT_EQ(made, expected) << "trial " << trial << " request " << i;
    }
  }
}

TEST(Generator, TakesNoMoreThanItsQueueHoldsAndFreesThePlaceOfACancelledRequest) {
  Requests requests(1, 4, {.queue = 2});
  const GeneratorRequest request{.text = {.prompt = {1, 2}}, .settings = {.max_new_tokens = 5}};
  EXPECT_EQ(requests.generator->submit(request), 0);
  EXPECT_EQ(requests.generator->submit(request), 1);
  EXPECT_EQ(requests.generator->submit(request), std::nullopt);
  requests.generator->cancel(1);
  EXPECT_EQ(requests.generator->submit(request), 2);
  while (requests.generator->step()) {
  }
  EXPECT_EQ(requests.text(0).tokens.size(), 5U);
  EXPECT_EQ(requests.text(1).end, std::nullopt);
  EXPECT_EQ(requests.text(2).tokens.size(), 5U);
}

TEST(Generator, ARequestThatItsOwnEventCancelsHasNoMoreEvents) {
  Requests requests(1, 4, {.queue = 3});
  requests.unwanted = {0, 1};
  const GenerationSettings scores_alone{.max_new_tokens = 0, .prompt_log_probabilities = true};
  requests.generator->submit({.text = {.prompt = {1, 2, 3}}, .settings = scores_alone});
  requests.generator->submit({.text = {.prompt = {1, 2, 3}}, .settings = {.max_new_tokens = 5}});
  requests.generator->submit({.text = {.prompt = {1, 2, 3}}, .settings = {.max_new_tokens = 5}});
  while (requests.generator->step()) {
  }
  EXPECT_EQ(requests.text(0).prompt_scores.size(), 2U);
  EXPECT_EQ(requests.text(0).end, std::nullopt);
  EXPECT_TRUE(requests.text(1).tokens.empty());
  EXPECT_EQ(requests.text(1).end, std::nullopt);
  EXPECT_EQ(requests.text(2).tokens.size(), 5U);
}

TEST(Generator, LongPromptsAreFedBetweenTheTokensOfOthers) {
  Requests requests(2, 2, {.queue = 2, .prompt_tokens_a_step = 2});
  requests.generator->submit({.text = {.prompt = {1}}, .settings = {.max_new_tokens = 20}});
  requests.generator->submit({.text = {.prompt = std::vector<std::int32_t>(21, 1)}, .settings = {.max_new_tokens = 1}});
  for (std::size_t tokens = 1; tokens <= 9; ++tokens) {
    requests.generator->step();
    EXPECT_EQ(requests.text(0).tokens.size(), tokens);
    EXPECT_TRUE(requests.text(1).tokens.empty());
  }
  requests.generator->step();
  EXPECT_EQ(requests.text(1).tokens.size(), 1U);
}

}  // namespace
}  // namespace teratron::testing
