// Low-rank adapters beside frozen weights. Their gradients follow from those of a model whose weights have the product
// merged in, which is trained as a whole: with W' = W + s B A, dA = s B^T dW' and dB = s dW' A^T. In any layout they
// train as on one rank.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/trials.h"
#include "model/derivative_check.h"
#include "model/presets.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

using Values = std::map<std::string, std::vector<double>>;

struct Trained {
  std::unique_ptr<Backend> backend = kDouble();
  std::unique_ptr<Model> model;
  std::unique_ptr<Executor> executor;

  explicit Trained(const Study& study, const ModelConfig& config) : model(make_model(config)) {
    executor = std::make_unique<Executor>(
        *backend, *model,
        ExecutorOptions{.batch = study.batch, .tokens = study.tokens, .logits_chunk = study.logits_chunk});
    executor->allocate();
    executor->initialize(study.seed);
  }
  std::map<std::string, Parameter*> parameters() const {
    std::map<std::string, Parameter*> by_name;
    for (Parameter* parameter : executor->parameters()) by_name[parameter->name] = parameter;
    return by_name;
  }
  std::vector<double> values(const Parameter& parameter) const { return values_of(*backend, parameter.value); }
  std::vector<double> gradient(const Parameter& parameter) const { return values_of(*backend, parameter.gradient); }
};

// An adapter, the weight that it is beside, and the first row of its part there.
struct Place {
  const Parameter *a, *b, *weight;
  std::int64_t first_row;
};

std::vector<Place> places_of(const std::map<std::string, Parameter*>& parameters) {
  std::vector<Place> places;
  for (const auto& [name, a] : parameters) {
    if (!name.ends_with(".lora_a")) continue;
    std::string layer = name.substr(0, name.rfind('.'));
    const Parameter* const b = parameters.at(layer + ".lora_b");
    std::int64_t part = 0;
    if (!parameters.contains(layer + ".weight")) {
      const std::string of = layer.substr(layer.rfind('.') + 1);
      layer = layer.substr(0, layer.rfind('.'));
      part = of == "query" ? 0 : of == "value" ? 1 : 0;
      if (layer.ends_with(".qkv")) part = of == "query" ? 0 : of == "key" ? 1 : 2;
    }
    places.push_back({a, b, parameters.at(layer + ".weight"), part * b->shape[0]});
  }
  return places;
}

TEST(Adapter, HasTheGradientThatFollowsFromThatOfMergedWeights) {
  for (std::uint32_t seed = 1; seed <= trials(40U); ++seed) {
    RandomStudy random(seed);
    Study& study = random.study;
    if (seed % 3 != 0) study.become_llama({});
    add_adapters(study, 0);
    ModelConfig merged_config = study.config;
    merged_config.adapters = {};
    const Trained adapted(study, study.config), merged(study, merged_config);
    const auto parameters = adapted.parameters(), wholes = merged.parameters();
    for (const auto& [name, whole] : wholes) adapted.backend->copy(parameters.at(name)->value, whole->value);
    const double scale = study.config.adapters.scale();
    std::mt19937 values(seed);
    std::normal_distribution<double> normal(0, 0.3);
    for (const auto& [a, b, weight, first] : places_of(parameters)) {
      const std::int64_t rank = a->shape[0], inputs = a->shape[1], outputs = b->shape[0];
      std::vector<double> drawn(static_cast<std::size_t>(b->shape.elements()));
      for (double& value : drawn) value = normal(values);
      adapted.backend->upload(b->value, drawn.data());
      const std::vector<double> low = adapted.values(*a);
      const TensorRef to = wholes.at(weight->name)->value;
      std::vector<double> whole = values_of(*merged.backend, to);
      for (std::int64_t o = 0; o < outputs; ++o) {
        for (std::int64_t i = 0; i < inputs; ++i) {
          for (std::int64_t r = 0; r < rank; ++r) {
            whole[static_cast<std::size_t>((first + o) * inputs + i)] +=
                scale * drawn[static_cast<std::size_t>(o * rank + r)] * low[static_cast<std::size_t>(r * inputs + i)];
          }
        }
      }
      merged.backend->upload(to, whole.data());
    }
    const RandomBatch batch = study.batch_of(0);
    const double loss = adapted.executor->forward_backward(batch.whole()).total();
    EXPECT_NEAR(loss, merged.executor->forward_backward(batch.whole()).total(), 1e-10) << study.text();
    for (const auto& [a, b, weight, first] : places_of(parameters)) {
      const std::int64_t rank = a->shape[0], inputs = a->shape[1], outputs = b->shape[0];
      const std::vector<double> dwhole = merged.gradient(*wholes.at(weight->name));
      const std::vector<double> low = adapted.values(*a), high = adapted.values(*b);
      std::vector<double> da(low.size()), db(high.size());
      for (std::int64_t o = 0; o < outputs; ++o) {
        for (std::int64_t i = 0; i < inputs; ++i) {
          const double dw = scale * dwhole[static_cast<std::size_t>((first + o) * inputs + i)];
          for (std::int64_t r = 0; r < rank; ++r) {
            const auto at_a = static_cast<std::size_t>(r * inputs + i), at_b = static_cast<std::size_t>(o * rank + r);
            da[at_a] += high[at_b] * dw;
            db[at_b] += low[at_a] * dw;
          }
        }
      }
      double largest = 0;
      for (const double value : dwhole) largest = std::max(largest, std::abs(value));
      for (std::size_t e = 0; e < da.size(); ++e) {
        ASSERT_NEAR(adapted.gradient(*a)[e], da[e], 1e-10 * (1 + largest)) << a->name << "; " << study.text();
      }
      for (std::size_t e = 0; e < db.size(); ++e) {
        ASSERT_NEAR(adapted.gradient(*b)[e], db[e], 1e-10 * (1 + largest)) << b->name << "; " << study.text();
      }
    }
  }
}

// No product stands for an adapter that drops inputs: its gradients are the derivatives of its loss.
TEST(Adapter, HasTheDerivativeOfItsLossWhereInputsAreDropped) {
  for (std::uint32_t seed = 1; seed <= trials(12U); ++seed) {
    RandomStudy random(seed);
    if (seed % 3 != 0) random.study.become_llama({});
    add_adapters(random.study, 0.3);
    const Trained adapted(random.study, random.study.config);
    std::mt19937 values(seed);
    std::normal_distribution<double> normal(0, 0.1);
    for (const auto& [name, parameter] : adapted.parameters()) {
      if (!name.ends_with(".lora_b")) continue;  // which would begin as zeros, and keep a's gradients zero
      std::vector<double> drawn(static_cast<std::size_t>(parameter->shape.elements()));
      std::ranges::generate(drawn, [&] { return normal(values); });
      adapted.backend->upload(parameter->value, drawn.data());
    }
    SCOPED_TRACE(random.study.text());
    expect_gradient_is_the_derivative(*adapted.executor, random.study.batch_of(0).whole());
  }
}

// Weights that are frozen have no memory but their values, and keep their bits.
TEST(Adapter, LeavesTheOtherWeightsAsTheyAre) {
  RandomStudy random(4);
  Study& study = random.study;
  study.become_llama({});
  add_adapters(study, 0.1);
  const Trained adapted(study, study.config);
  Values before;
  for (const auto& [name, parameter] : adapted.parameters()) before[name] = adapted.values(*parameter);
  const RandomBatch batch = study.batch_of(0);
  for (std::int64_t update = 1; update <= 2; ++update) {
    adapted.executor->forward_backward(batch.whole());
    adapted.executor->update({.learning_rate = 0.1, .update = update, .gradient_norm = 1});
  }
  for (const auto& [name, parameter] : adapted.parameters()) {
    EXPECT_EQ(parameter->frozen, !parameter->adapter);
    EXPECT_EQ(static_cast<bool>(parameter->gradient), parameter->adapter) << name;
    EXPECT_EQ(parameter->state.slots.empty(), parameter->frozen) << name;
    EXPECT_EQ(adapted.values(*parameter) == before[name], parameter->frozen) << name;
  }
}

// A model that is all frozen but for low ranks has next to no gradients and moments: of 16 bytes a parameter remain the
// 2 of its value.
TEST(Adapter, TakesNoMemoryForGradientsAndMomentsOfFrozenWeights) {
  const auto bytes = [](std::int64_t rank, MemoryKind kind) {
    ModelConfig config = small_config();
    config.set_kind(ModelKind::kLlama);
    config.hidden_size = 96;
    config.adapters = {.rank = rank, .targets = AdapterConfig::kQuery | AdapterConfig::kValue};
    const auto model = make_model(config);
    const auto backend = make_cpu_backend({.compute_dtype = DType::kBF16});
    Executor executor(*backend, *model, {.batch = 2, .tokens = 4});
    std::int64_t trained = 0, all = 0;
    for (const Parameter* parameter : executor.parameters()) {
      all += parameter->shape.elements();
      if (!parameter->frozen) trained += parameter->shape.elements();
    }
    return std::array{executor.memory().bytes_of(kind), trained, all};
  };
  const auto [weights, trained, all] = bytes(2, MemoryKind::kWeights);
  EXPECT_LT(trained, all / 20);
  EXPECT_NEAR(static_cast<double>(weights), 2.0 * static_cast<double>(all), 2000);
  EXPECT_LE(bytes(2, MemoryKind::kGradients)[0], 4 * trained + 2000);  // those that live at the fullest time
  EXPECT_NEAR(static_cast<double>(bytes(2, MemoryKind::kOptimizer)[0]), 10.0 * static_cast<double>(trained), 3000);
}

// Bytes planned for Llama 3.1 8B in bf16, rank 16 beside every matrix, sequences of 2048 tokens, one recomputed layer
// at a time; `tiles`: of the frozen weights.
std::int64_t bytes_of_eight_billion(std::optional<DType> tiles) {
  ModelConfig config;
  find_model_preset("llama-3.1-8b").apply_to(config);
  config.vocab_size = 128256;
  config.max_position_embeddings = 2048;
  config.adapters = {.rank = 16, .targets = ~0U & ~static_cast<unsigned>(AdapterConfig::kPacked)};
  const auto model = make_model(config);
  const auto backend = make_cpu_backend({.compute_dtype = DType::kBF16});
  const Executor executor(*backend, *model,
                          {.batch = 1,
                           .tokens = 2048,
                           .logits_chunk = 512,
                           .weight_tiles = tiles,
                           .schedule = pipeline::make_schedule(pipeline::ScheduleKind::k1F1B, {.micro_batches = 4}),
                           .recompute = Recompute::kFull});
  fmt::print("{:.2f} GB planned\n", static_cast<double>(executor.memory().bytes()) * 1e-9);
  return executor.memory().bytes();
}

// The weights alone are 16 GB.
TEST(Adapter, LetsAModelOfEightBillionParametersTrainIn24GB) {
  const std::int64_t bytes = bytes_of_eight_billion({});
  EXPECT_LT(bytes, 24'000'000'000);
  EXPECT_GT(bytes, 16'000'000'000);
}

// 8.5 bits a frozen weight are 8.5 GB.
TEST(Adapter, LetsAModelOfEightBillionParametersTrainIn11GBBesideWeightsIn8Bits) {
  const std::int64_t bytes = bytes_of_eight_billion(DType::kQ8Tile);
  EXPECT_LT(bytes, 11'000'000'000);
  EXPECT_GT(bytes, 8'500'000'000);
}

void expect_trained_alike(const Result& actual, const Result& alone, const std::string& what) {
  expect_near(actual.losses, alone.losses, 1e-10, what + ": losses");
  expect_near(actual.norms, alone.norms, 1e-9, what + ": gradient norms");
  expect_near(actual.weights, alone.weights, 1e-9, what + ": weights");
}

TEST(AdapterLayout, ChangesNothingInDoubleOverRandomShapes) {
  for (std::uint32_t seed = 1; seed <= trials(20U); ++seed) {
    RandomStudy random(seed);
    const Layout layout = random.layout();
    if (seed % 3 != 0) random.study.become_llama(layout.mesh);
    add_adapters(random.study, seed % 2 * 0.2);
    random.study.epsilon = 1e-4;
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_trained_alike(train(random.study, layout, kDouble), alone, random.study.text() + "; " + layout.text());
    if (HasFailure()) return;
  }
}

TEST(AdapterLayout, ChangesNothingInDoubleOverPipelines) {
  for (std::uint32_t seed = 1; seed <= trials(20U); ++seed) {
    RandomPipeline random(seed);
    if (seed % 3 != 0) random.study.become_llama(random.layout.mesh);
    add_adapters(random.study, seed % 2 * 0.2);
    random.study.epsilon = 1e-4;
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_trained_alike(train(random.study, random.layout, kDouble), alone, random.text());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace teratron::testing
