// A small random micro-batch for tests of whole models.
#pragma once

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "model/language_model.h"

namespace teratron::testing {

struct RandomBatch {
  static constexpr std::uint32_t kLabels = 2;
  std::int64_t batch, tokens;
  std::vector<std::int32_t> ids, targets;
  std::vector<float> weights;
  // With all_inputs, as BERT needs them: two types of tokens, sequences of different lengths, a label for each, and
  // targets for some of their tokens, here and there for none.
  std::vector<std::int32_t> token_types, key_lengths, labels;
  std::vector<float> label_weights;
  // After add_documents().
  std::vector<std::int32_t> first_keys, position_ids;
  std::vector<std::int32_t> answers;  // after add_answers()

  RandomBatch(std::int64_t b, std::int64_t t, std::int64_t vocab, std::uint32_t seed, bool all_inputs = false)
      : batch(b), tokens(t) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < b * t; ++i) {
      ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab)));
      targets.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab)));
      weights.push_back(static_cast<float>(1.0 / static_cast<double>(b * t)));
    }
    if (!all_inputs) return;
    for (std::int64_t i = 0; i < b * t; ++i) token_types.push_back(static_cast<std::int32_t>(random() % 2));
    for (std::int64_t i = 0; i < b; ++i) {
      key_lengths.push_back(static_cast<std::int32_t>(1 + random() % static_cast<std::uint32_t>(t)));
      labels.push_back(static_cast<std::int32_t>(random() % kLabels));
      label_weights.push_back(static_cast<float>(0.5 / static_cast<double>(b)));
    }
    for (std::int64_t i = 0; i < b * t; ++i) {
      const bool is_text = i % t < key_lengths[static_cast<std::size_t>(i / t)];
      if (!is_text || random() % 3 == 0) weights[static_cast<std::size_t>(i)] = 0;
    }
  }

  // Instead of the labels above: those of a task's head, some without a weight.
  void add_labels(const ModelConfig& config, const ModelTraits& traits, std::uint32_t seed) {
    std::mt19937 random(seed);
    if (config.head == ModelHead::kTokens) return add_token_labels(config.num_labels);
    labels.assign(static_cast<std::size_t>(traits.labels_of(batch)), 0);
    label_weights.clear();
    for (std::size_t label = 0; label < labels.size(); ++label) {
      const std::size_t text = label * static_cast<std::size_t>(batch) / labels.size();
      const std::int64_t count = config.head == ModelHead::kClassification ? config.num_labels
                                 : config.head == ModelHead::kChoice       ? kChoices
                                                                           : std::int64_t{key_lengths[text]};
      labels[label] = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(count));
      if (config.head == ModelHead::kClassification && count == 1) {  // a number between -2 and 2
        labels[label] = std::bit_cast<std::int32_t>(static_cast<float>(random() % 401) / 100 - 2);
      }
      if (config.head == ModelHead::kVectors) {  // a similarity; where it is ranked, nothing reads it
        labels[label] = std::bit_cast<std::int32_t>(static_cast<float>(random() % 201) / 100 - 1);
      }
      label_weights.push_back(random() % 4 == 0 ? 0 : 1.0F / static_cast<float>(labels.size()));
    }
  }

  // The targets become labels of tokens; none is of padding.
  void add_token_labels(std::int64_t count) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] %= static_cast<std::int32_t>(count);
      const auto t = static_cast<std::int32_t>(i % static_cast<std::size_t>(tokens));
      if (t >= key_lengths[i / static_cast<std::size_t>(tokens)]) weights[i] = 0;
    }
  }

  // Documents that share the sequences: `end`, of which some are strewn in, ends one.
  void add_documents(std::int32_t end, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::int32_t start = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto t = static_cast<std::int32_t>(i % static_cast<std::size_t>(tokens));
      if (t == 0 || ids[i - 1] == end) start = t;
      if (random() % 3 == 0) ids[i] = end;
      first_keys.push_back(start);
      position_ids.push_back(t - start);
    }
  }

  // Pairs of answers whose tokens lie strewn over their sequence, each with a weight of its own; some tokens are of
  // none.
  void add_answers(std::uint32_t seed) {
    std::mt19937 random(seed);
    for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
      const float pair_weights[] = {0.5F / static_cast<float>(batch), 0.25F / static_cast<float>(batch)};
      for (std::int64_t t = 0; t < tokens; ++t) {
        const auto answer = static_cast<std::int32_t>(random() % 5) - 2;
        weights[static_cast<std::size_t>(sequence * tokens + t)] = answer == 0 ? 0 : pair_weights[std::abs(answer) - 1];
        answers.push_back(answer);
      }
    }
  }

  // Sequences first .. first + count - 1.
  MicroBatch part(std::int64_t first, std::int64_t count) const {
    const auto begin = static_cast<std::size_t>(first * tokens), length = static_cast<std::size_t>(count * tokens);
    const auto sample = static_cast<std::size_t>(first), samples = static_cast<std::size_t>(count);
    return {.ids = std::span(ids).subspan(begin, length),
            .token_types = part_of(token_types, begin, length),
            .key_lengths = part_of(key_lengths, sample, samples),
            .first_keys = part_of(first_keys, begin, length),
            .position_ids = part_of(position_ids, begin, length),
            .targets = std::span(targets).subspan(begin, length),
            .weights = std::span(weights).subspan(begin, length),
            .answers = part_of(answers, begin, length),
            .labels = labels_of(labels, sample, samples),
            .label_weights = labels_of(label_weights, sample, samples),
            .batch = count,
            .tokens = tokens,
            .first_sample = first,
            .seed = 7,
            .iteration = 3};
  }
  MicroBatch whole() const { return part(0, batch); }

 private:
  template <class T>
  static std::span<const T> part_of(const std::vector<T>& values, std::size_t begin, std::size_t count) {
    return values.empty() ? std::span<const T>() : std::span(values).subspan(begin, count);
  }
  template <class T>
  std::span<const T> labels_of(const std::vector<T>& values, std::size_t sample, std::size_t samples) const {
    const auto all = static_cast<std::size_t>(batch);
    return part_of(values, sample * values.size() / all, samples * values.size() / all);
  }
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

inline ModelConfig small_bert_config(NormPlacement placement = NormPlacement::kPre) {
  ModelConfig config = small_config();
  config.set_kind(ModelKind::kBert);
  config.norm_placement = placement;
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

inline std::vector<const Parameter*> trained_parameters(Executor& runner) {
  std::vector<const Parameter*> trained;
  std::ranges::copy_if(runner.parameters(), std::back_inserter(trained), [](const auto* p) { return !p->frozen; });
  return trained;
}

// All gradients, one after the other.
inline std::vector<double> gradients_of(Executor& runner) {
  std::vector<double> all;
  for (const Parameter* parameter : trained_parameters(runner)) {
    const std::vector<double> values = values_of(runner.backend(), parameter->gradient);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace teratron::testing
