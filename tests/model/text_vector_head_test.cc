// BERT that learns vectors of texts: its losses are those of the vectors by the definition, its gradient is the
// derivative, and neither padding nor the layout changes anything.
#include "model/text_vector_head.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "model/bert.h"
#include "model/derivative_check.h"
#include "model/encoder.h"
#include "model/train_in_layout.h"

namespace teratron::testing {
namespace {

constexpr TextVectors kLearned[] = {{.pooling = Pooling::kMean},
                                    {.pooling = Pooling::kCls, .texts = 3},
                                    {.pooling = Pooling::kLastToken},
                                    {.pooling = Pooling::kMean, .texts = 3},
                                    {.pooling = Pooling::kMeanSqrtLength, .are_similarities = true},
                                    {.pooling = Pooling::kCls, .are_similarities = true}};

ModelConfig vector_config(const TextVectors& vectors, NormPlacement placement, double dropout) {
  ModelConfig config = small_bert_config(placement);
  config.head = ModelHead::kVectors;
  config.vectors = vectors;
  config.hidden_dropout = config.attention_dropout = dropout;
  return config;
}

// A small model with twelve texts, and its executor.
struct VectorStudy {
  static constexpr std::int64_t kTexts = 12, kTokens = 7;

  explicit VectorStudy(const TextVectors& vectors, double dropout = 0.1, NormPlacement placement = NormPlacement::kPost)
      : config(vector_config(vectors, placement, dropout)),
        model(config),
        batch(kTexts, kTokens, config.vocab_size, 1, /*all_inputs=*/true),
        executor(*backend, model, {.batch = kTexts, .tokens = 9}) {
    batch.add_labels(config, model.traits, 3);
    executor.allocate();
    executor.initialize(11);
  }

  std::vector<float> vectors_of(const MicroBatch& micro_batch) {
    std::vector<float> values(static_cast<std::size_t>(kTexts * config.hidden_size));
    text_vectors(executor, model, micro_batch, config.vectors.pooling, values);
    return values;
  }

  const std::unique_ptr<Backend> backend = make_reference_backend(DType::kF64);
  ModelConfig config;
  Bert model;
  RandomBatch batch;
  Executor executor;
};

double cosine_of(const std::vector<float>& vectors, std::size_t hidden, std::size_t a, std::size_t b) {
  double product = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < hidden; ++i) {
    const double x = double{vectors[a * hidden + i]}, y = double{vectors[b * hidden + i]};
    product += x * y, of_a += x * x, of_b += y * y;
  }
  return product / std::sqrt(of_a * of_b);
}

// The sum of weight * loss by the definition.
double loss_of(const std::vector<float>& vectors, const RandomBatch& batch, const ModelConfig& config) {
  const auto texts = static_cast<std::size_t>(config.vectors.texts), hidden = vectors.size() / VectorStudy::kTexts;
  double total = 0;
  for (std::size_t example = 0; example < batch.labels.size(); ++example) {
    const double own = cosine_of(vectors, hidden, example * texts, example * texts + 1);
    double loss = std::pow(own - double{std::bit_cast<float>(batch.labels[example])}, 2);
    if (!config.vectors.are_similarities) {
      double sum = 0;
      for (std::size_t other = 0; other < VectorStudy::kTexts; ++other) {
        if (other % texts != 0) sum += std::exp(20 * cosine_of(vectors, hidden, example * texts, other));
      }
      loss = std::log(sum) - 20 * own;
    }
    total += double{batch.label_weights[example]} * loss;
  }
  return total;
}

void for_each_learned(const std::function<void(const TextVectors&)>& use) {
  for (const TextVectors& vectors : kLearned) {
    SCOPED_TRACE(fmt::format("{}, {} texts, similarities {}", name_of(vectors.pooling), vectors.texts,
                             vectors.are_similarities));
    use(vectors);
  }
}

TEST(TextVectorHead, LossIsThatOfTheVectorsByTheDefinition) {
  for_each_learned([](const TextVectors& vectors) {
    for (const NormPlacement placement : {NormPlacement::kPre, NormPlacement::kPost}) {
      VectorStudy study(vectors, /*dropout=*/0, placement);
      const double expected = loss_of(study.vectors_of(study.batch.whole()), study.batch, study.config);
      ASSERT_GT(expected, 0.1);
      EXPECT_NEAR(study.executor.forward_backward(study.batch.whole()).total(), expected,
                  1e-6 * expected);  // vectors come as floats
      EXPECT_NEAR(study.executor.evaluate(study.batch.whole()).total(), expected, 1e-6 * expected);
    }
  });
}

TEST(TextVectorHead, GradientIsTheDerivativeAlongRandomDirections) {
  for_each_learned([](const TextVectors& vectors) {
    for (const NormPlacement placement : {NormPlacement::kPre, NormPlacement::kPost}) {
      VectorStudy study(vectors, 0.1, placement);
      expect_gradient_is_the_derivative(study.executor, study.batch.whole());
    }
  });
}

TEST(TextVectorHead, EveryParameterGetsAGradientAndThereIsNoPooler) {
  VectorStudy study(kLearned[0]);
  EXPECT_FALSE(study.model.pooler);
  expect_every_parameter_gets_a_gradient(study.executor, study.batch.whole(), study.config.parameters());
}

TEST(TextVectorHead, WhatPaddingHoldsChangesNothing) {
  for_each_learned([](const TextVectors& vectors) {
    VectorStudy study(vectors);
    RandomBatch& batch = study.batch;
    for (std::int32_t& length : batch.key_lengths) length = std::min(length, 5);
    const std::vector<double> expected = losses_and_gradients(study.executor, batch.whole());
    for (std::size_t i = 0; i < batch.ids.size(); ++i) {
      if (static_cast<std::int32_t>(i % VectorStudy::kTokens) >= batch.key_lengths[i / VectorStudy::kTokens]) {
        batch.ids[i] = (batch.ids[i] + 1) % static_cast<std::int32_t>(study.config.vocab_size);
      }
    }
    EXPECT_EQ(losses_and_gradients(study.executor, batch.whole()), expected);
  });
}

// Micro-batches of the same examples are the same groups of negatives in all of them.
TEST(TextVectorHead, LayoutChangesNothing) {
  for (const TextVectors& vectors : {kLearned[0], kLearned[3], kLearned[4]}) {
    Study study{.config = vector_config(vectors, NormPlacement::kPost, 0.1), .batch = 4 * 2 * vectors.texts};
    study.tokens = 6;
    study.epsilon = 1e-6;  // gradients that are zero but for rounding must not become steps
    study.group = 2 * vectors.texts;
    const Layout alone{.micro_batch = study.group};
    const Result expected = train(study, alone, kDouble);
    for (const MeshShape mesh : {MeshShape{.tensor = 3}, MeshShape{.pipeline = 2}, MeshShape{.data = 2},
                                 MeshShape{.tensor = 3, .pipeline = 2, .data = 2}}) {
      if (!(vectors == kLearned[0]) && mesh.ranks() < 12) continue;
      for (const bool more : {false, true}) {
        Layout layout{.mesh = mesh, .micro_batch = study.group, .shard_optimizer = more};
        layout.sequence_parallel = more && mesh.tensor > 1;
        if (more) layout.recompute = Recompute::kFull;
        expect_same(train(study, layout, kDouble), expected, 1e-9, layout.text());
      }
    }
    // Other groups are another loss, unless every pair is learned alone.
    const double other = train(study, {.micro_batch = 2 * study.group}, kDouble).losses.front();
    EXPECT_EQ(std::abs(other - expected.losses.front()) < 1e-9, vectors.are_similarities);
  }
}

TEST(TextVectorHead, SixteenBitsAreNearFp32) {
  for_each_learned([](const TextVectors& vectors) {
    VectorStudy exact(vectors, 0);
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      const auto backend = make_cpu_backend({.compute_dtype = dtype, .guard_memory = true});
      Bert model(exact.config);
      Executor executor(*backend, model, {.batch = VectorStudy::kTexts, .tokens = 9});
      executor.allocate();
      executor.initialize(11);
      const double loss = exact.executor.forward_backward(exact.batch.whole()).total();
      // Logits of up to 20 are rounded to 8 bits in bf16.
      EXPECT_NEAR(executor.forward_backward(exact.batch.whole()).total(), loss, 0.05 * loss + 0.02);
    }
  });
}

}  // namespace
}  // namespace teratron::testing
