// BERT in both orders of its norms: the gradient is the derivative, and the layout changes nothing. To the executor it
// is all that GPT-2 is not: it sees later tokens but not padding, has inputs of three kinds and losses of two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/trials.h"
#include "model/bert.h"
#include "model/derivative_check.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

constexpr NormPlacement kPlacements[] = {NormPlacement::kPre, NormPlacement::kPost};

ModelConfig without_dropout(NormPlacement placement) {
  ModelConfig config = small_bert_config(placement);
  config.hidden_dropout = config.attention_dropout = 0;
  return config;
}

TEST(Bert, GradientIsTheDerivativeAlongRandomDirections) {
  for (const NormPlacement placement : kPlacements) {
    const auto backend = make_reference_backend(DType::kF64);
    const ModelConfig config = small_bert_config(placement);
    Bert model(config);
    const RandomBatch batch(3, 7, config.vocab_size, 1, /*all_inputs=*/true);
    Executor executor(*backend, model, {.batch = 3, .tokens = 7, .logits_chunk = 4});
    executor.allocate();
    executor.initialize(11);
    expect_gradient_is_the_derivative(executor, batch.whole());
  }
}

// Every weight but those of padding takes part in some loss.
TEST(Bert, EveryParameterGetsAGradient) {
  for (const NormPlacement placement : kPlacements) {
    const auto backend = make_reference_backend(DType::kF64);
    const ModelConfig config = small_bert_config(placement);
    Bert model(config);
    const RandomBatch batch(3, 7, config.vocab_size, 1, true);
    Executor executor(*backend, model, {.batch = 3, .tokens = 7});
    executor.allocate();
    executor.initialize(11);
    expect_every_parameter_gets_a_gradient(executor, batch.whole(), config.parameters());
  }
}

TEST(Bert, LossesAreTheSameInEvaluationWithoutDropoutAndEachOfItsKind) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = without_dropout(NormPlacement::kPost);
  Bert model(config), evaluated(config);
  const RandomBatch batch(3, 7, config.vocab_size, 1, true);
  Executor training(*backend, model, {.batch = 3, .tokens = 7});
  Executor evaluation(*backend, evaluated, {.purpose = Purpose::kEvaluation, .batch = 3, .tokens = 7});
  EXPECT_LT(evaluation.memory().bytes(), training.memory().bytes() / 2);
  for (Executor* executor : {&training, &evaluation}) {
    executor->allocate();
    executor->initialize(11);
  }
  const LossSums trained = training.forward_backward(batch.whole());
  for (Executor* executor : {&training, &evaluation}) {
    const LossSums losses = executor->evaluate(batch.whole());
    ASSERT_EQ(losses.of_kind.size(), 3U);
    EXPECT_NEAR(losses.of_kind[0], trained.of_kind[0], 1e-12);
    EXPECT_NEAR(losses.of_kind[1], trained.of_kind[1], 1e-12);
    EXPECT_EQ(losses.of_kind[2], trained.of_kind[2]);
    EXPECT_DOUBLE_EQ(losses.total(), losses.of_kind[0] + losses.of_kind[1]);
  }
  // Weights add up to 0.5 for labels; without training a loss is near that of a guess.
  const double weights = std::accumulate(batch.weights.begin(), batch.weights.end(), 0.0);
  EXPECT_NEAR(trained.of_kind[0] / weights, std::log(static_cast<double>(config.vocab_size)), 1.5);
  EXPECT_NEAR(trained.of_kind[1] / 0.5, std::log(2.0), 1.0);
}

// The order is right where it is likelier than the other one: a loss of less than log 2. Opposite labels are right
// where these are wrong.
TEST(Bert, AccuracyOfTheOrderCountsTheTextsWhoseLikelierOrderIsRight) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = without_dropout(NormPlacement::kPre);
  Bert model(config);
  constexpr std::int64_t kTexts = 24;
  Executor executor(*backend, model, {.purpose = Purpose::kEvaluation, .batch = kTexts, .tokens = 7});
  executor.allocate();
  executor.initialize(11);
  RandomBatch batch(kTexts, 7, config.vocab_size, 5, true);
  const double right = executor.evaluate(batch.whole()).of_kind[2];
  double expected = 0;
  for (std::size_t text = 0; text < kTexts; ++text) {
    RandomBatch alone = batch;
    for (std::size_t other = 0; other < kTexts; ++other) alone.label_weights[other] = other == text ? 1 : 0;
    const LossSums losses = executor.evaluate(alone.whole());
    EXPECT_EQ(losses.of_kind[2], losses.of_kind[1] < std::log(2.0) ? 1 : 0);
    expected += losses.of_kind[2] * static_cast<double>(batch.label_weights[text]);
  }
  EXPECT_NEAR(right, expected, 1e-12);
  EXPECT_GT(right, 0);
  for (std::int32_t& label : batch.labels) label = 1 - label;
  EXPECT_NEAR(executor.evaluate(batch.whole()).of_kind[2], 0.5 - right, 1e-7);  // weights are floats
}

// Padding that no sequence of a micro-batch needs may be cut off: dropout's masks stay those of the uncut sequences.
TEST(Bert, CutPaddingChangesNothing) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = small_bert_config(NormPlacement::kPost);
  RandomBatch batch(3, 9, config.vocab_size, 1, true);
  for (std::int32_t& length : batch.key_lengths) length = std::min(length, 5);
  for (std::size_t i = 0; i < batch.weights.size(); ++i) {
    if (i % 9 >= 5) batch.weights[i] = 0;
  }
  const auto gradients = [&](const MicroBatch& of) {
    Bert model(config);
    Executor executor(*backend, model, {.batch = 3, .tokens = 9});
    executor.allocate();
    executor.initialize(11);
    return losses_and_gradients(executor, of);
  };
  const std::vector<double> expected = gradients(batch.whole());
  const auto cut = [](auto& values) {
    for (std::size_t i = values.size(); i-- > 0;) {
      if (i % 9 >= 5) values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
    }
  };
  cut(batch.ids), cut(batch.token_types), cut(batch.targets), cut(batch.weights);
  batch.tokens = 5;
  MicroBatch shorter = batch.whole();
  shorter.uncut_tokens = 9;
  const std::vector<double> actual = gradients(shorter);
  ASSERT_EQ(actual.size(), expected.size());
  // Equal products in sums of other lengths.
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-13 + 1e-12 * std::abs(expected[i]));
  shorter.uncut_tokens = 0;
  EXPECT_NE(gradients(shorter), actual) << "masks that count by the cut sequences are others";
}

// A micro-batch in which chance masked no token.
TEST(Bert, ABatchWithoutTargetsHasTheGradientsOfTheOtherLossAlone) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = small_bert_config();
  Bert model(config);
  RandomBatch batch(3, 7, config.vocab_size, 1, true);
  Executor executor(*backend, model, {.batch = 3, .tokens = 7});
  executor.allocate();
  executor.initialize(11);
  const LossSums with_targets = executor.forward_backward(batch.whole());
  std::ranges::fill(batch.weights, 0.0F);
  const LossSums without = executor.forward_backward(batch.whole());
  EXPECT_EQ(without.of_kind[0], 0);
  EXPECT_EQ(without.of_kind[1], with_targets.of_kind[1]);
  for (const double value : values_of(*backend, model.heads->bias.gradient)) EXPECT_EQ(value, 0);
  for (const double value : values_of(*backend, model.heads->transform.weight.gradient)) EXPECT_EQ(value, 0);
}

TEST(Bert, PaddingChangesNothing) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = without_dropout(NormPlacement::kPre);
  RandomBatch batch(3, 7, config.vocab_size, 1, true);
  const auto gradients = [&] {
    Bert model(config);
    Executor executor(*backend, model, {.batch = 3, .tokens = 7});
    executor.allocate();
    executor.initialize(11);
    return losses_and_gradients(executor, batch.whole());
  };
  const std::vector<double> expected = gradients();
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    if (static_cast<std::int32_t>(i % 7) < batch.key_lengths[i / 7]) continue;
    batch.ids[i] = (batch.ids[i] + 1) % static_cast<std::int32_t>(config.vocab_size);
    batch.token_types[i] = 1 - batch.token_types[i];
  }
  EXPECT_EQ(gradients(), expected);
}

// Every other one is that of pre-training.
ModelHead head_of_trial(std::uint32_t seed) {
  constexpr std::array kTasks = {ModelHead::kClassification, ModelHead::kChoice, ModelHead::kSpans, ModelHead::kTokens};
  return seed % 2 == 0 ? ModelHead::kPretraining : kTasks[seed / 2 % kTasks.size()];
}

// In double the layouts may differ only by the order of sums: 1e-10 leaves four digits for three AdamW steps.
TEST(Bert, LayoutChangesNothingInDoubleOverRandomShapes) {
  const MakeBackend reference = [] { return make_reference_backend(DType::kF64); };
  for (std::uint32_t seed = 1; seed <= trials(90U); ++seed) {
    RandomStudy random(seed);
    Layout layout = random.layout();
    random.study.become_bert(head_of_trial(seed), layout);
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, reference);
    expect_same(train(random.study, layout, reference), alone, 1e-10, random.study.text() + "; " + layout.text());
    if (HasFailure()) return;
  }
}

TEST(Bert, PipelinesChangeNothingInDoubleOverRandomSchedules) {
  const MakeBackend reference = [] { return make_reference_backend(DType::kF64); };
  for (std::uint32_t seed = 1; seed <= trials(120U); ++seed) {
    RandomPipeline random(seed, /*may_slice=*/false);
    random.study.become_bert(head_of_trial(seed), random.layout);
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, reference);
    expect_same(train(random.study, random.layout, reference), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

TEST(Bert, RecomputingActivationsChangesNoBit) {
  Study study{.config = small_bert_config(), .batch = 4, .tokens = 6};
  for (const bool sequence_parallel : {false, true}) {
    for (const MakeBackend& make : {MakeBackend([] { return make_cpu_backend({.guard_memory = true}); }),
                                    MakeBackend([] { return make_cpu_backend({.compute_dtype = DType::kBF16}); })}) {
      Layout layout{{.tensor = 3}, 2, sequence_parallel};
      const Result kept = train(study, layout, make);
      for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
        layout.recompute = recompute;
        EXPECT_EQ(train(study, layout, make).weights, kept.weights) << layout.text();
      }
    }
  }
}

TEST(Bert, ThatSeesLaterTokensCannotRunInSlices) {
  const auto backend = make_reference_backend(DType::kF32);
  Bert model(small_bert_config());
  const pipeline::Schedule sliced =
      pipeline::make_schedule(pipeline::ScheduleKind::kTeraPipe, {.micro_batches = 1, .slices = 2});
  EXPECT_THROW(Executor(*backend, model, {.tokens = 8, .schedule = sliced, .cuts = cut_alike(1, {4, 4})}), UserError);
  EXPECT_THROW(Executor(*backend, model, {.purpose = Purpose::kGeneration, .tokens = 8}), UserError);
}

}  // namespace
}  // namespace teratron::testing
