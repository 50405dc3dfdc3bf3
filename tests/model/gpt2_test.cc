// The whole model against its own definition in double precision: the derivative along random directions, and what must
// not change it (how the batch is cut, where gradients lie in memory, padding).
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "checkpoint/hugging_face/mapping.h"
#include "model/derivative_check.h"

namespace teratron::testing {
namespace {

LanguageModel make_runner(Backend& backend, const ModelConfig& config, const ExecutorOptions& options) {
  LanguageModel runner(backend, config, options);
  runner.allocate();
  runner.initialize(11);
  return runner;
}

TEST(Gpt2, GradientIsTheDerivativeAlongRandomDirections) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = small_config();
  const RandomBatch batch(3, 7, config.vocab_size, 1);
  auto runner = make_runner(*backend, config, {.batch = 3, .tokens = 7, .logits_chunk = 4});
  expect_gradient_is_the_derivative(runner, batch.whole());
}

TEST(Gpt2, EveryParameterGetsAGradientInEveryRow) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = small_config();
  // All positions of the model, and a batch that holds every token, so that every row has a gradient.
  RandomBatch batch(4, config.max_position_embeddings, config.vocab_size, 2);
  for (std::size_t i = 0; i < batch.ids.size(); ++i) batch.ids[i] = static_cast<std::int32_t>(i) % 19;
  auto runner = make_runner(*backend, config, {.batch = 4, .tokens = batch.tokens});
  for (const Parameter* parameter : runner.parameters()) {
    const std::vector<double> poison(static_cast<std::size_t>(parameter->gradient.elements()), std::nan(""));
    backend->upload(parameter->gradient, poison.data());
  }
  runner.forward_backward(batch.whole());
  for (const Parameter* parameter : runner.parameters()) {
    const std::int64_t rows = parameter->shape[0], columns = parameter->shape.elements() / rows;
    const std::vector<double> values = values_of(*backend, parameter->gradient);
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::int64_t column = 0; column < columns; ++column) {
        sum += std::abs(values[static_cast<std::size_t>(row * columns + column)]);
      }
      if (row >= rows - parameter->padding_rows) {
        EXPECT_EQ(sum, 0) << parameter->name << " padding row " << row;
      } else if (parameter->name.find("qkv.bias") == std::string::npos || row < 12 || row >= 24) {
        EXPECT_GT(sum, 0) << parameter->name << " row " << row;  // a key's bias cancels in the softmax: zero but finite
      }
      EXPECT_TRUE(std::isfinite(sum)) << parameter->name;
    }
  }
}

TEST(Gpt2, MicroBatchSizeNeverChangesLossOrGradient) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = small_config();
  const RandomBatch batch(6, 5, config.vocab_size, 3);
  auto whole = make_runner(*backend, config, {.batch = 6, .tokens = 5});
  const double loss = whole.forward_backward(batch.whole()).total();
  const std::vector<double> gradient = gradients_of(whole);
  for (const std::int64_t size : {1, 2, 3}) {
    std::vector<MicroBatch> parts_of_batch;
    for (std::int64_t first = 0; first < 6; first += size) parts_of_batch.push_back(batch.part(first, size));
    auto runner = make_runner(
        *backend, config,
        {.batch = size, .tokens = 5, .schedule = {.micro_batches = static_cast<int>(parts_of_batch.size())}});
    EXPECT_NEAR(runner.forward_backward(parts_of_batch).total(), loss, 1e-12);
    const std::vector<double> parts = gradients_of(runner);
    for (std::size_t i = 0; i < parts.size(); ++i) ASSERT_NEAR(parts[i], gradient[i], 1e-12) << i;
  }
}

TEST(Gpt2, GradientsThatTakeTheActivationsPlaceHaveTheSameBits) {
  const auto backend = make_reference_backend(DType::kF32);
  ModelConfig config = small_config();
  config.num_layers = 5;
  const RandomBatch batch(2, 9, config.vocab_size, 4);
  auto apart = make_runner(*backend, config, {.batch = 2, .tokens = 9, .schedule = {.micro_batches = 2}});
  auto shared = make_runner(*backend, config, {.batch = 2, .tokens = 9});
  EXPECT_LT(shared.memory().bytes(), apart.memory().bytes());
  EXPECT_EQ(shared.forward_backward(batch.whole()).total(), apart.forward_backward(batch.whole()).total());
  EXPECT_EQ(gradients_of(shared), gradients_of(apart));
}

TEST(Gpt2, PaddingOfTheVocabularyChangesNothing) {
  const auto backend = make_reference_backend(DType::kF64);
  ModelConfig config = small_config();
  const RandomBatch batch(2, 9, config.vocab_size, 5);
  config.make_vocab_size_divisible_by = 1;
  auto exact = make_runner(*backend, config, {.batch = 2, .tokens = 9});
  config.make_vocab_size_divisible_by = 64;
  auto padded = make_runner(*backend, config, {.batch = 2, .tokens = 9});
  EXPECT_DOUBLE_EQ(exact.forward_backward(batch.whole()).total(), padded.forward_backward(batch.whole()).total());
}

TEST(Gpt2, CachedGenerationGivesTheLogitsOfTheWholeText) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = small_config();
  const RandomBatch text(1, 9, config.vocab_size, 6);
  auto whole = make_runner(*backend, config, {.purpose = Purpose::kEvaluation, .tokens = 9});
  const auto vocab = static_cast<std::size_t>(config.vocab_size);
  std::vector<float> expected(9 * vocab), actual(vocab);
  whole.logits(text.ids, 0, 9, expected);
  auto cached = make_runner(*backend, config, {.purpose = Purpose::kGeneration, .tokens = 4});
  // A prompt in two uneven pieces, then token by token.
  for (std::size_t begin = 0, piece = 4; begin < 9; begin += piece, piece = begin == 4 ? 2 : 1) {
    cached.logits(std::span(text.ids).subspan(begin, piece), static_cast<std::int64_t>(begin), 1, actual);
    for (std::size_t i = 0; i < vocab; ++i) EXPECT_NEAR(actual[i], expected[(begin + piece - 1) * vocab + i], 1e-6);
  }
}

TEST(Gpt2, EvaluationGivesTheTrainingLossWithoutDropout) {
  const auto backend = make_reference_backend(DType::kF64);
  ModelConfig config = small_config();
  config.hidden_dropout = config.attention_dropout = 0;
  const RandomBatch batch(2, 7, config.vocab_size, 8);
  auto training = make_runner(*backend, config, {.batch = 2, .tokens = 7});
  auto evaluation = make_runner(*backend, config, {.purpose = Purpose::kEvaluation, .batch = 2, .tokens = 7});
  EXPECT_LT(evaluation.memory().bytes(), training.memory().bytes() / 2);
  std::vector<float> losses(2 * 7), tail(2 * 3);
  evaluation.losses(batch.whole(), 0, losses);
  const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / 14;
  EXPECT_NEAR(mean, training.forward_backward(batch.whole()).total(), 1e-6);
  evaluation.losses(batch.whole(), 4, tail);
  for (std::size_t sequence = 0; sequence < 2; ++sequence) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(tail[sequence * 3 + i], losses[sequence * 7 + 4 + i]);
  }
}

TEST(Gpt2, TheEmbeddingsDropoutIsTheHiddenOneUnlessItHasItsOwn) {
  const auto backend = make_reference_backend(DType::kF32);
  const RandomBatch batch(2, 7, small_config().vocab_size, 8);
  const auto loss = [&](double hidden, double embedding) {
    ModelConfig config = small_config();
    config.hidden_dropout = hidden;
    config.attention_dropout = 0;
    config.embedding_dropout = embedding;
    return make_runner(*backend, config, {.batch = 2, .tokens = 7}).forward_backward(batch.whole()).total();
  };
  EXPECT_EQ(loss(0.5, 0.5), loss(0.5, 1));
  EXPECT_EQ(loss(0, 0), loss(0, 1));
  EXPECT_NE(loss(0.5, 0), loss(0.5, 1));
  EXPECT_NE(loss(0, 0.5), loss(0, 1));
}

TEST(Gpt2, ParameterCountIsTheClosedFormAndNamesAreUnique) {
  ModelConfig config;  // 124M
  config.make_vocab_size_divisible_by = 1;
  EXPECT_EQ(config.parameters(), 124439808);  // as published for GPT-2 small
  Decoder model(config);
  std::int64_t count = 0;
  std::set<std::string> names, hugging_face;
  model.visit([&](Parameter& parameter) {
    count += parameter.shape.elements();
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    for (const HuggingFaceTensor& theirs : hugging_face_tensors(config, parameter).parts) {
      EXPECT_TRUE(hugging_face.insert(theirs.name).second) << theirs.name;
    }
    EXPECT_EQ(parameter.decay, parameter.shape.rank() == 2) << parameter.name;
  });
  EXPECT_EQ(count, config.parameters());
}

TEST(Gpt2, TheFirstLayerWhoseOutputIsNotFiniteIsFound) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto backend = make_cpu_backend({.compute_dtype = dtype});
    LanguageModel runner(*backend, small_config(), {.batch = 2, .tokens = 5});
    runner.allocate();
    runner.initialize(1);
    const RandomBatch data(2, 5, small_config().vocab_size, 1);
    EXPECT_EQ(runner.first_not_finite(data.whole()).name, "");
    backend->fill(runner.model().layers[1].mlp.down.bias->value, 1e25);  // whose squares overflow
    EXPECT_EQ(runner.first_not_finite(data.whole()).name, "");
    backend->fill(runner.model().layers[1].mlp.up.bias->value, std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(runner.first_not_finite(data.whole()).name, "layer 1");
    backend->fill(runner.model().layers[1].mlp.up.bias->value, 0);
    EXPECT_EQ(runner.first_not_finite(data.whole()).name, "") << "what was found before counts no more";
    backend->fill(runner.model().embedding.positions->value, std::numeric_limits<double>::infinity());
    EXPECT_EQ(runner.first_not_finite(data.whole()).name, "the embedding");
  }
}

TEST(ModelConfig, EveryFaultIsListedWithTheNearestSizesThatWork) {
  ModelConfig config;
  config.hidden_size = 1000;
  config.num_attention_heads = 16;
  config.hidden_dropout = 1.5;
  const std::vector<std::string> faults = config.faults().texts();
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_NE((faults[0] + faults[1]).find("992, 1008"), std::string::npos);
  const auto backend = make_reference_backend(DType::kF32);
  EXPECT_THROW(LanguageModel(*backend, config, {.tokens = 8}), UserError);
}

}  // namespace
}  // namespace teratron::testing
