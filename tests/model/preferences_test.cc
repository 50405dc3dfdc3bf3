// Pairs of answers (DPO): the loss by its definition from a model with and one without adapters, its gradient by
// differences, and training in any layout as on one rank.
#include <gtest/gtest.h>

#include <map>

#include "base/trials.h"
#include "model/derivative_check.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

constexpr double kBeta = 0.7;

// A model in double on one rank, without dropout.
struct PreferenceModel {
  std::unique_ptr<Backend> backend = kDouble();
  std::unique_ptr<Model> model;
  std::unique_ptr<Executor> executor;

  PreferenceModel(const Study& study, const ModelConfig& config, std::optional<PreferenceConfig> preferences)
      : model(make_model(config)) {
    executor = std::make_unique<Executor>(*backend, *model,
                                          ExecutorOptions{.batch = study.batch,
                                                          .tokens = study.tokens,
                                                          .logits_chunk = study.logits_chunk,
                                                          .preferences = preferences});
    executor->allocate();
    executor->initialize(study.seed);
  }
  void take_weights_of(const PreferenceModel& other) const {
    std::map<std::string, TensorRef> there;
    for (const Parameter* parameter : other.executor->parameters()) there[parameter->name] = parameter->value;
    for (const Parameter* parameter : executor->parameters())
      backend->copy(parameter->value, there.at(parameter->name));
  }
  // Adapters begin with zeros, and the model as its reference.
  void move_adapters(std::uint32_t seed) const {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 0.5);
    for (const Parameter* parameter : executor->parameters()) {
      if (!parameter->adapter) continue;
      std::vector<double> values(static_cast<std::size_t>(parameter->shape.elements()));
      for (double& value : values) value = normal(random);
      backend->upload(parameter->value, values.data());
    }
  }
  // log p of an answer: the tokens of this number in a sequence.
  double log_probability(const RandomBatch& batch, std::int64_t sequence, std::int32_t answer) const {
    std::vector<float> weights(static_cast<std::size_t>(batch.tokens));
    MicroBatch one = batch.part(sequence, 1);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = one.answers[i] == answer ? 1 : 0;
    one.weights = weights;
    return -executor->evaluate(one).total();
  }
};

Study random_preferences(std::uint32_t seed, double dropout) {
  RandomStudy random(seed);
  Study study = random.study;
  study.tokens += 3;
  if (seed % 3 != 0) study.become_llama({});
  study.config.hidden_dropout = study.config.attention_dropout = dropout;
  add_adapters(study, dropout);
  return study;
}

TEST(Preferences, HaveTheLossAndTheRewardsOfTheirDefinition) {
  for (std::uint32_t seed = 1; seed <= trials(20U); ++seed) {
    const Study study = random_preferences(seed, 0);
    ModelConfig plain = study.config;
    plain.adapters = {};
    const PreferenceModel preferring(study, study.config, PreferenceConfig{.beta = kBeta}),
        adapted(study, study.config, {}), reference(study, plain, {});
    preferring.move_adapters(seed);
    adapted.take_weights_of(preferring);
    reference.take_weights_of(preferring);
    RandomBatch batch = study.batch_of(0);
    batch.add_answers(seed);
    std::vector<double> expected(preference_losses().size());
    for (std::int64_t sequence = 0; sequence < study.batch; ++sequence) {
      for (const std::int32_t number : {1, 2}) {
        double weight = 0;
        const MicroBatch one = batch.part(sequence, 1);
        for (std::size_t i = 0; i < one.answers.size(); ++i) {
          if (std::abs(one.answers[i]) == number) weight = double{one.weights[i]};
        }
        const auto reward = [&](std::int32_t answer) {
          return kBeta * (adapted.log_probability(batch, sequence, answer) -
                          reference.log_probability(batch, sequence, answer));
        };
        const double chosen = reward(number), rejected = reward(-number), margin = chosen - rejected;
        const double values[] = {-std::log(1 / (1 + std::exp(-margin))), chosen, rejected, margin,
                                 margin > 0 ? 1.0 : 0.0};
        for (std::size_t kind = 0; kind < expected.size(); ++kind) expected[kind] += weight * values[kind];
      }
    }
    expect_near(preferring.executor->evaluate(batch.whole()).of_kind, expected, 1e-9, study.text());
    const LossSums trained = preferring.executor->forward_backward(batch.whole());
    expect_near(trained.of_kind, expected, 1e-9, study.text());
    EXPECT_EQ(trained.total(), trained.of_kind[0]);
  }
}

// Weights of targets are floats, and so 6e-8 of a gradient may be lost.
TEST(Preferences, HaveTheGradientThatFollowsFromTheLoss) {
  for (std::uint32_t seed = 1; seed <= trials(10U); ++seed) {
    const Study study = random_preferences(seed, 0);
    const PreferenceModel model(study, study.config, PreferenceConfig{.beta = kBeta});
    model.move_adapters(seed);
    RandomBatch batch = study.batch_of(0);
    batch.add_answers(seed);
    Executor& executor = *model.executor;
    executor.forward_backward(batch.whole());
    std::vector<std::pair<const Parameter*, std::vector<double>>>
        gradients;  // which lie in memory that later calls use
    for (const Parameter* parameter : executor.parameters()) {
      if (!parameter->frozen) gradients.emplace_back(parameter, values_of(*model.backend, parameter->gradient));
    }
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (const auto& [parameter, gradient] : gradients) {
      const std::vector<double> values = values_of(*model.backend, parameter->value);
      std::vector<double> direction(values.size());
      double expected = 0, size = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        direction[i] = normal(random);
        expected += direction[i] * gradient[i];
        size += std::abs(direction[i] * gradient[i]);
      }
      const auto loss_at = [&](double distance) {
        std::vector<double> moved = values;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += distance * direction[i];
        model.backend->upload(parameter->value, moved.data());
        return executor.evaluate(batch.whole()).total();
      };
      constexpr double kStep = 1e-5;
      const double found = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
      model.backend->upload(parameter->value, values.data());
      EXPECT_NEAR(found, expected, 1e-7 * (size + 1)) << parameter->name << "; " << study.text();
    }
  }
}

// The first step is that of log 2 = -log sigmoid(0), whatever the pairs: adapters begin as nothing.
TEST(Preferences, BeginWithTheirReference) {
  const Study study = random_preferences(5, 0);
  const PreferenceModel model(study, study.config, PreferenceConfig{});
  RandomBatch batch = study.batch_of(0);
  batch.add_answers(1);
  const LossSums sums = model.executor->evaluate(batch.whole());
  double pairs = 0;
  for (std::int64_t sequence = 0; sequence < study.batch; ++sequence) {
    for (const std::int32_t number : {1, 2}) {
      const MicroBatch one = batch.part(sequence, 1);
      const auto at =
          std::ranges::find_if(one.answers, [&](std::int32_t answer) { return std::abs(answer) == number; });
      if (at != one.answers.end()) pairs += double{one.weights[static_cast<std::size_t>(at - one.answers.begin())]};
    }
  }
  EXPECT_NEAR(sums.of_kind[0], pairs * std::log(2.0), 1e-12);
  for (std::size_t kind = 1; kind < sums.of_kind.size(); ++kind) EXPECT_EQ(sums.of_kind[kind], 0);
}

TEST(Preferences, OverflowNowhere) {
  const std::vector<std::int32_t> answers = {1, -1}, targets = {0, 0};
  const std::vector<float> ones = {1, 1};
  const MicroBatch batch{.targets = targets, .weights = ones, .answers = answers, .batch = 1, .tokens = 2};
  LossSums sums = no_losses(preference_losses());
  const std::vector<double> none = {0, 0};
  const std::vector<float> lost = preference_weights({.beta = 1}, batch, std::vector{5000.0, 0.0}, none, sums);
  EXPECT_EQ(sums.of_kind[0], 5000);
  EXPECT_EQ(lost, (std::vector<float>{1, -1}));
  const std::vector<float> won = preference_weights({.beta = 1}, batch, std::vector{0.0, 5000.0}, none, sums);
  EXPECT_EQ(sums.of_kind[0], 5000);
  EXPECT_EQ(won, (std::vector<float>{0, -0.0F}));
}

void expect_preferred_alike(const Study& study, const Layout& layout, const Result& alone) {
  const Result result = train(study, layout, kDouble);
  const std::string what = study.text() + "; " + layout.text();
  expect_near(result.losses, alone.losses, 1e-9, what + ": losses");
  expect_near(result.norms, alone.norms, 1e-8, what + ": gradient norms");
  expect_near(result.weights, alone.weights, 1e-8, what + ": weights");
}

void prefer(Study& study, double dropout) {
  study.preferences = PreferenceConfig{.beta = kBeta};
  study.epsilon = 1e-4;
  study.learning_rate = 0.05;  // so that adapters soon differ from nothing
  add_adapters(study, dropout);
}

TEST(PreferenceLayout, ChangesNothingInDoubleOverRandomShapes) {
  for (std::uint32_t seed = 1; seed <= trials(12U); ++seed) {
    RandomStudy random(seed);
    const Layout layout = random.layout();
    if (seed % 3 != 0) random.study.become_llama(layout.mesh);
    prefer(random.study, seed % 2 * 0.2);
    expect_preferred_alike(random.study, layout, train(random.study, {.micro_batch = random.study.batch}, kDouble));
    if (HasFailure()) return;
  }
}

// Pipelines of every schedule; some micro-batches have cuts of their own, some vocabularies are shared out over stages.
TEST(PreferenceLayout, ChangesNothingInDoubleOverPipelines) {
  for (std::uint32_t seed = 1; seed <= trials(24U); ++seed) {
    RandomPipeline random(seed, seed % 4 != 0);
    if (seed % 3 != 0) random.study.become_llama(random.layout.mesh);
    if (seed % 5 == 1) random.cut_jointly();
    if (seed % 5 == 2) random.cut_each();
    prefer(random.study, seed % 2 * 0.2);
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    random.layout.vocabulary_parallel =
        random.layout.mesh.pipeline > 1 && random.layout.slices.empty() && random.layout.cuts.empty();
    expect_preferred_alike(random.study, random.layout, alone);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace teratron::testing
