// A small random micro-batch for tests of whole models.
#pragma once

#include <numeric>
#include <random>
#include <vector>

#include "model/language_model.h"

namespace teratron::test {

struct RandomBatch {
  std::int64_t batch, tokens;
  std::vector<std::int32_t> ids, targets;
  std::vector<float> weights;

  RandomBatch(std::int64_t b, std::int64_t t, std::int64_t vocab, std::uint32_t seed) : batch(b), tokens(t) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < b * t; ++i) {
      ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab)));
      targets.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab)));
      weights.push_back(static_cast<float>(1.0 / static_cast<double>(b * t)));
    }
  }

  // Sequences first .. first + count - 1.
  MicroBatch part(std::int64_t first, std::int64_t count) const {
    const auto begin = static_cast<std::size_t>(first * tokens), length = static_cast<std::size_t>(count * tokens);
    return {.ids = std::span(ids).subspan(begin, length),
            .targets = std::span(targets).subspan(begin, length),
            .weights = std::span(weights).subspan(begin, length),
            .batch = count,
            .tokens = tokens,
            .first_sample = first,
            .seed = 7,
            .iteration = 3};
  }
  MicroBatch whole() const { return part(0, batch); }
};

inline ModelConfig small_config() {
  ModelConfig config;
  config.num_layers = 2;
  config.hidden_size = 12;
  config.num_attention_heads = 3;
  config.vocab_size = 19;
  config.max_position_embeddings = 9;
  config.make_vocab_size_divisible_by = 8;
  config.hidden_dropout = config.attention_dropout = 0.1;
  config.init_method_std = 0.3;  // large, so that every path carries signal
  return config;
}

inline std::vector<double> values_of(Backend& backend, TensorRef view) {
  const auto count = static_cast<std::size_t>(view.elements());
  std::vector<double> values(count);
  if (view.dtype == DType::kF64) {
    backend.download(values.data(), view);
  } else {
    std::vector<float> floats(count);
    backend.download(floats.data(), view);
    values.assign(floats.begin(), floats.end());
  }
  return values;
}

// All gradients, one after the other.
inline std::vector<double> gradients_of(Executor& runner) {
  std::vector<double> all;
  for (const Parameter* parameter : runner.parameters()) {
    const std::vector<double> values = values_of(runner.backend(), parameter->gradient);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace teratron::test
