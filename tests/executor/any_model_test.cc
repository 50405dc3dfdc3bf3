// The executor's promises for a model that is nothing like GPT-2 (test_encoder.h): the gradient is the derivative, and
// the layout changes nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "executor/test_encoder.h"
#include "model/derivative_check.h"
#include "model/random_layouts.h"

namespace teratron {
namespace {

using test::expect_same;
using test::Layout;
using test::MakeBackend;
using test::RandomBatch;
using test::TestEncoder;

const test::MakeModel kMakeEncoder = [](const ModelConfig& config, GroupRank place) {
  return std::make_unique<TestEncoder>(config, place);
};

TEST(AnyModel, GradientIsTheDerivativeAlongRandomDirections) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = test::small_config();
  TestEncoder model(config);
  const RandomBatch batch(3, 7, config.vocab_size, 1, /*all_inputs=*/true);
  Executor executor(*backend, model, {.batch = 3, .tokens = 7, .logits_chunk = 4});
  executor.allocate();
  executor.initialize(11);
  test::expect_gradient_is_the_derivative(executor, batch.whole());
}

TEST(AnyModel, LossesAreTheSameInEvaluationWithoutDropoutAndEachOfItsKind) {
  const auto backend = make_reference_backend(DType::kF64);
  ModelConfig config = test::small_config();
  config.hidden_dropout = config.attention_dropout = 0;
  TestEncoder model(config), evaluated(config);
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
    ASSERT_EQ(losses.of_kind.size(), 2U);
    EXPECT_NEAR(losses.of_kind[0], trained.of_kind[0], 1e-12);
    EXPECT_NEAR(losses.of_kind[1], trained.of_kind[1], 1e-12);
  }
  // Weights add up to 1 for targets and to 0.5 for labels; without training a loss is near that of a guess.
  EXPECT_NEAR(trained.of_kind[0], std::log(static_cast<double>(config.vocab_size)), 1.5);
  EXPECT_NEAR(trained.of_kind[1], 0.5 * std::log(static_cast<double>(TestEncoder::kLabels)), 1.0);
}

TEST(AnyModel, PaddingChangesNothing) {
  const auto backend = make_reference_backend(DType::kF64);
  ModelConfig config = test::small_config();
  config.hidden_dropout = config.attention_dropout = 0;
  RandomBatch batch(3, 7, config.vocab_size, 1, true);
  for (std::size_t i = 0; i < batch.weights.size(); ++i) {
    if (static_cast<std::int32_t>(i % 7) >= batch.key_lengths[i / 7]) batch.weights[i] = 0;
  }
  const auto gradients = [&] {
    TestEncoder model(config);
    Executor executor(*backend, model, {.batch = 3, .tokens = 7});
    executor.allocate();
    executor.initialize(11);
    std::vector<double> values = {executor.forward_backward(batch.whole()).total()};
    const std::vector<double> more = test::gradients_of(executor);
    values.insert(values.end(), more.begin(), more.end());
    return values;
  };
  const std::vector<double> expected = gradients();
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    if (batch.weights[i] != 0) continue;
    batch.ids[i] = (batch.ids[i] + 1) % static_cast<std::int32_t>(config.vocab_size);
    batch.token_types[i] = 1 - batch.token_types[i];
  }
  EXPECT_EQ(gradients(), expected);
}

// In double the layouts may differ only by the order of sums: 1e-10 leaves four digits for three AdamW steps.
TEST(AnyModel, LayoutChangesNothingInDoubleOverRandomShapes) {
  const MakeBackend reference = [] { return make_reference_backend(DType::kF64); };
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    test::RandomStudy random(seed);
    random.study.make_model = kMakeEncoder;
    const Layout layout = random.layout();
    const test::Result alone = train(random.study, {.micro_batch = random.study.batch}, reference);
    expect_same(train(random.study, layout, reference), alone, 1e-10, random.study.text() + "; " + layout.text());
    if (HasFailure()) return;
  }
}

TEST(AnyModel, PipelinesChangeNothingInDoubleOverRandomSchedules) {
  const MakeBackend reference = [] { return make_reference_backend(DType::kF64); };
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    test::RandomPipeline random(seed, /*may_slice=*/false);
    random.study.make_model = kMakeEncoder;
    const test::Result alone = train(random.study, {.micro_batch = random.study.batch}, reference);
    expect_same(train(random.study, random.layout, reference), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

TEST(AnyModel, RecomputingActivationsChangesNoBit) {
  test::Study study{.config = test::small_config(), .batch = 4, .tokens = 6, .make_model = kMakeEncoder};
  for (const bool sequence_parallel : {false, true}) {
    for (const MakeBackend& make : {MakeBackend([] { return make_cpu_backend({.guard_memory = true}); }),
                                    MakeBackend([] { return make_cpu_backend({.compute_dtype = DType::kBF16}); })}) {
      Layout layout{{.tensor = 3}, 2, sequence_parallel};
      const test::Result kept = train(study, layout, make);
      for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
        layout.recompute = recompute;
        EXPECT_EQ(train(study, layout, make).weights, kept.weights) << layout.text();
      }
    }
  }
}

TEST(AnyModel, ThatSeesLaterTokensCannotRunInSlices) {
  const auto backend = make_reference_backend(DType::kF32);
  TestEncoder model(test::small_config());
  const pipeline::Schedule sliced =
      pipeline::make_schedule(pipeline::ScheduleKind::kTeraPipe, {.micro_batches = 1, .slices = 2});
  EXPECT_THROW(Executor(*backend, model, {.tokens = 8, .schedule = sliced, .slice_tokens = {4, 4}}), UserError);
  EXPECT_THROW(Executor(*backend, model, {.purpose = Purpose::kGeneration, .tokens = 8}), UserError);
}

}  // namespace
}  // namespace teratron
