// Finite weights whose outputs are not finite: every evaluation says what of it, and what to do.
#include "eval/finite_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "checkpoint/damage.h"
#include "eval/generation/generation.h"
#include "eval/lambada.h"
#include "eval/text_vectors.h"
#include "eval/windows.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FiniteOutputs, TheFirstThatIsNotIsFoundAmongTheLargestThatAre) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(37, kLargest);
    for (std::size_t i = 0; i < values.size(); i += 2) values[i] = -kLargest;
    EXPECT_EQ(first_not_finite(values), std::nullopt);
    values[36] = wrong;
    EXPECT_EQ(first_not_finite(values), 36U);
    values[5] = wrong;
    EXPECT_EQ(first_not_finite(values), 5U);
  }
  EXPECT_EQ(first_not_finite({}), std::nullopt);
}

// A GPT-2 whose final norm makes its logits too large for fp16, or for any number.
class Overflow : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    backend_ = make_cpu_backend({.compute_dtype = GetParam()});
    ModelConfig config = small_config();
    config.make_vocab_size_divisible_by = 1;
    model_ = std::make_unique<LanguageModel>(*backend_, config,
                                             ExecutorOptions{.purpose = purpose(), .batch = 2, .tokens = 4});
    model_->allocate();
    model_->initialize(5);
    const double large = GetParam() == DType::kF16 ? 6e4 : 3e38;
    backend_->fill(model_->model().final_norm.gamma.value, large);
  }
  virtual Purpose purpose() const { return Purpose::kEvaluation; }
  std::string advice() const { return GetParam() == DType::kF16 ? "take --bf16" : "training has diverged"; }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<LanguageModel> model_;
};

TEST_P(Overflow, NamesTheTokenOfALoss) {
  const std::vector<std::int32_t> text = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_THAT(message_of<UserError>(
                  [&] { score_windows(*model_, text, scoring_windows(8, 4, 4), [](const ScoringState&) {}); }),
              AllOf(HasSubstr("the loss of the text's token "), HasSubstr(" of 9 is not finite"), HasSubstr(advice())));
}

TEST_P(Overflow, NamesAPassage) {
  const std::vector<Continuation> examples = {{.ids = {1, 2, 3, 4}, .scored = 1, .number = 17}};
  EXPECT_THAT(message_of<UserError>([&] { score_cloze(*model_, examples); }),
              AllOf(HasSubstr("the loss of passage 17 is not finite"), HasSubstr(advice())));
}

class OverflowInGeneration : public Overflow {
  Purpose purpose() const override { return Purpose::kGeneration; }
};

TEST_P(OverflowInGeneration, NamesThePrompt) {
  const GenerationRequest request{.prompt = {1, 2, 3}, .number = 6};
  EXPECT_THAT(message_of<UserError>([&] {
                generate_all(*model_, {&request, 1}, {},
                             {.prompt = {}, .token = [](auto...) { return true; }, .finished = [](auto...) {}});
              }),
              AllOf(HasSubstr("a logit after prompt 7 is not finite"), HasSubstr(advice())));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Overflow, ::testing::Values(DType::kF16, DType::kF32));
INSTANTIATE_TEST_SUITE_P(Precisions, OverflowInGeneration, ::testing::Values(DType::kF16, DType::kF32));

TEST(OverflowOfAVector, NamesTheText) {
  const auto backend = make_cpu_backend();
  Encoder encoder(*backend, small_bert_config(),
                  {.purpose = Purpose::kEvaluation, .batch = 2, .tokens = 6, .logits_chunk = 1});
  encoder.allocate();
  encoder.initialize(5);
  // Position that only the third text reaches.
  backend->fill(encoder.model().embedding.positions->value.slice(0, 4, 5), std::numeric_limits<double>::infinity());
  const TokenizedTexts texts{.ids = {{2, 5, 3}, {2, 3}, {2, 5, 6, 7, 8, 3}}, .longest = 6, .tokens = 11};
  int made = 0;
  EXPECT_THAT(message_of<UserError>(
                  [&] { make_text_vectors(encoder, texts, {}, [&](std::size_t, std::span<const float>) { ++made; }); }),
              AllOf(HasSubstr("the vector of text 3 is not finite"), HasSubstr("training has diverged")));
}

}  // namespace
}  // namespace teratron::testing
