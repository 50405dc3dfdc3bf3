// Prompts that begin alike are computed once, as far as a cache holds them.
#include <gtest/gtest.h>

#include <random>

#include "eval/generation/generator.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kPiece = 4;

std::vector<std::int32_t> joined(std::vector<std::int32_t> begin, const std::vector<std::int32_t>& end) {
  begin.insert(begin.end(), end.begin(), end.end());
  return begin;
}

class SharedPrompts {
 public:
  explicit SharedPrompts(std::int64_t caches, std::int64_t prompt_tokens_a_step = 0, std::int64_t piece = kPiece)
      : model_(*backend_, config(), {.purpose = Purpose::kGeneration, .tokens = piece, .caches = caches}) {
    model_.allocate();
    model_.initialize(5);
    GeneratorEvents events;
    events.token = [](std::int64_t, const GeneratedToken&) { return true; };
    events.read = [this](std::int64_t id, std::int64_t reused) {
      reused_.resize(std::max(reused_.size(), static_cast<std::size_t>(id) + 1), -1);
      reused_[static_cast<std::size_t>(id)] = reused;
    };
    generator.emplace(model_, GeneratorLimits{.queue = 64, .prompt_tokens_a_step = prompt_tokens_a_step},
                      std::move(events));
  }

  std::int64_t submit(const std::vector<std::int32_t>& prompt, bool scores = false) {
    return *generator->submit(
        {.text = {.prompt = prompt}, .settings = {.max_new_tokens = 3, .prompt_log_probabilities = scores}});
  }
  void finish() {
    while (generator->step()) {
    }
  }
  // Tokens of the prompt that came from elsewhere, where it is the only one under way.
  std::int64_t reused_of(const std::vector<std::int32_t>& prompt, bool scores = false) {
    const PromptCounts before = generator->prompt_counts();
    const std::int64_t id = submit(prompt, scores);
    finish();
    const PromptCounts after = generator->prompt_counts();
    EXPECT_EQ(after.reused - before.reused, reused(id));
    EXPECT_EQ(after.computed - before.computed, std::ssize(prompt) - reused(id));
    return reused(id);
  }
  std::int64_t reused(std::int64_t id) const { return reused_.at(static_cast<std::size_t>(id)); }

  std::optional<Generator> generator;

 private:
  static ModelConfig config() {
    ModelConfig config = small_config();
    config.max_position_embeddings = 400;
    return config;
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  LanguageModel model_;
  std::vector<std::int64_t> reused_;
};

const std::vector<std::int32_t> kSystem = {1, 2, 3, 4, 5, 6, 5, 4, 3, 2};  // two pieces, and a half

TEST(SharedPrompts, WholePiecesOfTheSameBeginningAreReused) {
  for (const std::int64_t caches : {1, 2, 5}) {
    SharedPrompts prompts(caches);
    EXPECT_EQ(prompts.reused_of(joined(kSystem, {1, 1, 1})), 0) << "nothing is there";
    EXPECT_EQ(prompts.reused_of(joined(kSystem, {2, 2, 2, 2, 2})), 2 * kPiece);
    EXPECT_EQ(prompts.reused_of(joined(kSystem, {2, 2, 2, 2, 1})), 14) << "all but the last token are the same";
    EXPECT_EQ(prompts.reused_of(joined(kSystem, {2, 2, 2, 2, 2, 6})), 3 * kPiece);
    EXPECT_EQ(prompts.reused_of(kSystem), 2 * kPiece) << "a beginning of another";
    EXPECT_EQ(prompts.reused_of(kSystem), 9) << "the same prompt";
    EXPECT_EQ(prompts.reused_of({1, 2, 3, 4, 0, 0}), kPiece);
    EXPECT_EQ(prompts.reused_of({1, 2, 3, 4}), 0) << "the last token is always computed";
    EXPECT_EQ(prompts.reused_of({6, 6, 6, 6, 6}), 0);
  }
}

// Pieces have several units of 64 tokens, and a unit is shared alone.
TEST(SharedPrompts, UnitsOfAPieceAreReused) {
  SharedPrompts prompts(2, 0, 256);
  std::vector<std::int32_t> prompt(380, 1);
  EXPECT_EQ(prompts.reused_of(prompt), 0);
  prompt[200] = 2;
  EXPECT_EQ(prompts.reused_of(prompt), 192);
  prompt[320] = 2;
  EXPECT_EQ(prompts.reused_of(prompt), 320);
  EXPECT_EQ(prompts.reused_of(prompt), 379);
}

TEST(SharedPrompts, ScoredPromptsAreComputedAndShared) {
  SharedPrompts prompts(3);
  EXPECT_EQ(prompts.reused_of(kSystem, /*scores=*/true), 0);
  EXPECT_EQ(prompts.reused_of(kSystem, /*scores=*/true), 0);
  EXPECT_EQ(prompts.reused_of(kSystem), 9);
}

TEST(SharedPrompts, ThePromptUsedLeastRecentlyGoes) {
  const auto prompt = [](std::int32_t token) { return std::vector<std::int32_t>(9, token); };
  for (const std::int32_t asked : {1, 2, 3, 4, 5}) {
    SharedPrompts prompts(4);
    for (const std::int32_t token : {1, 2, 3}) EXPECT_EQ(prompts.reused_of(prompt(token)), 0);
    for (const std::int32_t token : {3, 2, 1}) EXPECT_EQ(prompts.reused_of(prompt(token)), 8);
    for (const std::int32_t token : {4, 5}) EXPECT_EQ(prompts.reused_of(prompt(token)), 0);
    EXPECT_EQ(prompts.reused_of(prompt(asked)), asked == 3 ? 0 : 8) << asked;
  }
}

TEST(SharedPrompts, ManyAtATimeComputeTheirBeginningOnce) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    const auto caches = static_cast<std::int64_t>(2 + random() % 5), budget = static_cast<std::int64_t>(random() % 12);
    SharedPrompts prompts(caches, budget);
    std::int64_t tokens = 0;
    constexpr std::int64_t kTexts = 12;
    for (std::int32_t i = 0; i < kTexts; ++i) {
      std::vector<std::int32_t> rest(3 + random() % 9, i / 6);
      rest.front() = i % 6;
      const std::vector<std::int32_t> prompt = joined(kSystem, rest);
      prompts.submit(prompt);
      tokens += std::ssize(prompt);
      if (random() % 3 == 0) prompts.generator->step();
    }
    prompts.finish();
    EXPECT_EQ(prompts.generator->prompt_counts().reused, (kTexts - 1) * 2 * kPiece) << trial;
    EXPECT_EQ(prompts.generator->prompt_counts().computed, tokens - (kTexts - 1) * 2 * kPiece) << trial;
  }
}

}  // namespace
}  // namespace teratron::testing
