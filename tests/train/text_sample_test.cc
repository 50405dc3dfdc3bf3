// What the model under training makes of a prompt, in any layout, while training goes on as without.
#include "train/watch/text_sample.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "eval/generation/generation.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using TokenIds = std::vector<std::int32_t>;

class TextSample : public TrainingFixture {
 protected:
  // Of the model as it starts, in the layout; rank by rank.
  std::vector<TokenIds> texts(const TrainConfig& config, const TokenIds& prompt, std::int64_t count,
                              const SamplingSettings& sampling) {
    std::vector<TokenIds> texts(static_cast<std::size_t>(config.layout.mesh().ranks()));
    on_ranks(config, [&](Trainer& trainer, Communicator& world) {
      trainer.start();
      texts[static_cast<std::size_t>(world.rank())] = continue_text(
          trainer.executor(), *trainer.task().model, kVocab, prompt, {.sampling = sampling, .max_new_tokens = count});
    });
    return texts;
  }
  // Of the same weights by the generator, which keeps keys and values.
  TokenIds generated(const TrainConfig& config, const TokenIds& prompt, std::int64_t count,
                     const SamplingSettings& sampling) {
    const auto backend = make_cpu_backend({});
    LanguageModel model(*backend, config.model.model_for(kVocab),
                        {.purpose = Purpose::kGeneration, .tokens = 8, .logits_chunk = 1});
    model.allocate();
    model.initialize(static_cast<std::uint64_t>(config.seed));
    TokenIds tokens;
    generate(model, prompt, {.sampling = sampling, .max_new_tokens = count},
             [&](std::int32_t token) { tokens.push_back(token); });
    return tokens;
  }
};

// Logits agree within rounding, and no draw of these lies so close to another token.
TEST_F(TextSample, IsWhatTheGeneratorMakesInAnyLayout) {
  RandomSequence random({.seed = 5});
  config_.model.config.num_layers = 4;
  config_.model.config.num_attention_heads = 4;
  config_.model.config.init_method_std = 0.3;             // tokens are far from alike
  config_.model.config.make_vocab_size_divisible_by = 1;  // every tensor-parallel rank has a part of it
  std::set<TokenIds> different;
  for (int trial = 0; trial < 25; ++trial) {
    TrainConfig config = random_pipeline(config_, random);
    config.seed = 1 + static_cast<std::int64_t>(random.below(5));
    SCOPED_TRACE(text_of_layout(config));
    TokenIds prompt(1 + random.below(9));
    for (std::int32_t& token : prompt) token = static_cast<std::int32_t>(random.below(kVocab));
    const SamplingSettings sampling{.temperature = random.below(2) == 0 ? 0.0 : 1.0, .seed = random.next_u32()};
    const auto room = config.model.seq_length - static_cast<std::int64_t>(prompt.size());
    const TokenIds expected = generated(config, prompt, std::min<std::int64_t>(room, 12), sampling);
    EXPECT_THAT(texts(config, prompt, 12, sampling), ::testing::Each(expected));
    different.insert(expected);
  }
  EXPECT_GT(different.size(), 20U);
}

TEST_F(TextSample, IdsBeyondTheTokenizerAreNeverDrawnInAnyLayout) {
  config_.model.config.make_vocab_size_divisible_by = 1;
  for (const std::int64_t tensor : {1, 3}) {
    TrainConfig config = config_;
    config.layout.tensor_parallel = tensor;
    on_ranks(config, [&](Trainer& trainer, Communicator&) {
      trainer.start();
      const auto most = [&](std::int64_t tokens) {
        const TokenIds made = continue_text(trainer.executor(), *trainer.task().model, kVocab, TokenIds{1},
                                            {.sampling = {.temperature = 5}, .max_new_tokens = 15, .tokens = tokens});
        return *std::ranges::max_element(made);
      };
      EXPECT_GE(most(0), 7);
      EXPECT_LT(most(7), 7);
    });
  }
}

// Whatever it is: a decoder that refuses what was drawn, logits that overflow.
TEST_F(TextSample, OneThatFailsIsReportedOnceAndChangesNothingOfTheTraining) {
  struct Failing : TrainingObserver {
    int samples = 0;
    std::vector<std::string> notices;
    void sample(std::int64_t, const std::string&, std::span<const std::int32_t>) override {
      ++samples;
      throw UserError("no such token");
    }
    void notice(const std::string& text) override { notices.push_back(text); }
  };
  config_.output.eval_interval = 2;
  const double loss = train(config_).result.final_loss.value();
  const TrainingData data = open_training_data(config_);
  const auto backend = make_cpu_backend({});
  TrainingTask task = make_training_task(config_, data, kVocab);
  task.samples.settings.max_new_tokens = 3;
  task.samples.prompts = {{.text = "a", .tokens = {1}}, {.text = "b", .tokens = {2}}};
  Trainer trainer(config_, *backend, std::move(task));
  trainer.start();
  Failing observer;
  EXPECT_EQ(trainer.run(observer).final_loss.value(), loss);
  EXPECT_EQ(observer.samples, 2 * 4);
  ASSERT_EQ(observer.notices.size(), 1U);
  EXPECT_THAT(observer.notices.front(), ::testing::AllOf(::testing::HasSubstr("sample after iteration 2 failed"),
                                                         ::testing::HasSubstr("no such token")));
}

TEST_F(TextSample, FillsASampleWhoseTokensRanksDoNotDivide) {
  config_.model.seq_length = 17;
  config_.layout.tensor_parallel = 3;
  const TokenIds prompt = {1};
  const TokenIds expected = texts(config_, prompt, 20, {}).front();
  EXPECT_EQ(expected.size(), 16U);
  EXPECT_EQ(generated(config_, prompt, 16, {}), expected);
}

TEST_F(TextSample, EndsWithTheDocumentOrTheSample) {
  const TokenIds prompt = {1, 2, 3};
  on_ranks(config_, [&](Trainer& trainer, Communicator&) {
    trainer.start();
    const auto made = [&](const TokenIds& ends) {
      return continue_text(trainer.executor(), *trainer.task().model, kVocab, prompt,
                           {.max_new_tokens = 1000, .other_stops = ends});
    };
    const TokenIds whole = made({});
    EXPECT_EQ(whole.size(), static_cast<std::size_t>(config_.model.seq_length) - prompt.size());
    const auto end = std::ranges::find(whole, whole[4]);
    EXPECT_EQ(made({kVocab + 1, whole[4]}), TokenIds(whole.begin(), end));
  });
}

}  // namespace
}  // namespace teratron::testing
