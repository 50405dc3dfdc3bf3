// Golden files of a Hugging Face model (tests/golden), and our gradients next to theirs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/tensor_stream.h"
#include "model/random_batch.h"
#include "optim/adamw.h"

namespace teratron::testing {

inline std::vector<float> floats_of(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  if (entry == nullptr) throw std::runtime_error("no golden tensor " + name);
  const auto bytes = file.bytes(*entry);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::vector<double> doubles_of(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  if (entry == nullptr) throw std::runtime_error("no golden tensor " + name);
  const auto bytes = file.bytes(*entry);
  std::vector<double> values(bytes.size() / static_cast<std::size_t>(size_of(*entry->dtype)));
  convert_floats(std::as_writable_bytes(std::span(values)), DType::kF64, bytes, *entry->dtype);
  return values;
}

// A parameter's values, as ours has them, from the tensors "KIND.NAME": "grad" is its gradient.
inline std::vector<double> golden_values(const SafetensorsFile& file, const std::string& kind, const ModelConfig& model,
                                         const Parameter& parameter) {
  std::vector<double> whole;
  for (const HuggingFaceTensor& tensor : hugging_face_tensors(model, parameter).parts) {
    std::vector<double> theirs = doubles_of(file, kind + "." + tensor.name);
    const auto skipped = std::ssize(theirs) / tensor.shape[0] * tensor.skipped_rows;
    theirs.erase(theirs.begin(), theirs.begin() + skipped);
    const auto rows = static_cast<std::size_t>(tensor.transposed[0]),
               columns = static_cast<std::size_t>(tensor.transposed[1]), piece = theirs.size() / rows / columns;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::size_t row = i / piece % rows, column = i / piece / rows;
      whole.push_back(theirs[(row * columns + column) * piece + i % piece]);
    }
  }
  return whole;
}

// The rows of a matrix of `inputs`, one after the other.
inline std::vector<std::int32_t> flattened(const nlohmann::json& inputs, const char* name) {
  std::vector<std::int32_t> values;
  for (const auto& row : inputs[name]) values.insert(values.end(), row.begin(), row.end());
  return values;
}

// Each to 1e-4 of its norm: fp32 sums leave about 1e-6. Where terms of a gradient cancel, that much of the largest
// value of all is left: `of_largest` is allowed besides. Padding rows come last and have none.
inline void expect_gradients_agree(Executor& runner, const SafetensorsFile& file, const ModelConfig& model,
                                   double of_largest = 0) {
  double largest = 0;
  for (const Parameter* parameter : runner.parameters()) {
    for (const double value : golden_values(file, "grad", model, *parameter)) {
      largest = std::max(largest, std::abs(value));
    }
  }
  for (const Parameter* parameter : runner.parameters()) {
    const std::vector<double> actual = values_of(runner.backend(), parameter->gradient);
    const std::vector<double> golden = golden_values(file, "grad", model, *parameter);
    ASSERT_GE(actual.size(), golden.size()) << parameter->name;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < golden.size(); ++i) {
      difference += std::pow(actual[i] - golden[i], 2);
      norm += golden[i] * golden[i];
    }
    EXPECT_LT(std::sqrt(difference), 1e-4 * std::sqrt(norm) + of_largest * largest) << parameter->name;
  }
}

// AdamW as the oracles' scripts have it.
inline std::shared_ptr<const Optimizer> oracles_optimizer() {
  return std::make_shared<AdamWOptimizer>(AdamWSettings{.beta2 = 0.95, .weight_decay = 0.1});
}

// Compares the steps of PyTorch's AdamW in `golden`: losses, and gradient norms before clipping.
inline void expect_steps_agree(Executor& runner, const nlohmann::json& golden, const MicroBatch& micro_batch,
                               double of_losses, double of_norms) {
  const std::vector<Parameter*> parameters = runner.parameters();
  const auto steps = static_cast<std::int64_t>(golden["losses"].size());
  ASSERT_GE(steps, 3);
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto index = static_cast<std::size_t>(step);
    const double loss = golden["losses"][index].get<double>(), norm = golden["grad_norms"][index].get<double>();
    EXPECT_NEAR(runner.forward_backward(micro_batch).total(), loss, of_losses * loss) << "step " << step;
    const double actual = gradient_norm(runner.backend(), parameters, runner.mesh());
    EXPECT_NEAR(actual, norm, of_norms * norm) << "step " << step;
    runner.update({.learning_rate = 1e-3, .update = step + 1, .gradient_norm = actual});
  }
}

}  // namespace teratron::testing
