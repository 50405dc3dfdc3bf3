// The gradient that an executor computes against the derivative of its loss along random directions, in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "model/random_batch.h"

namespace teratron::testing {

// Losses of each kind, then the gradients of all parameters.
inline std::vector<double> losses_and_gradients(Executor& executor, const MicroBatch& batch) {
  std::vector<double> values = executor.forward_backward(batch).of_kind;
  const std::vector<double> gradients = gradients_of(executor);
  values.insert(values.end(), gradients.begin(), gradients.end());
  return values;
}

// Every parameter takes part in some loss, and together they are those that the configuration counts.
inline void expect_every_parameter_gets_a_gradient(Executor& executor, const MicroBatch& batch, std::int64_t count) {
  executor.forward_backward(batch);
  std::int64_t counted = 0;
  for (const Parameter* parameter : executor.parameters()) {
    const std::vector<double> gradient = values_of(executor.backend(), parameter->gradient);
    // Softmaxes ignore what is added to all of their logits; then rounding alone is left of the gradient.
    EXPECT_TRUE(std::ranges::any_of(gradient, [](double value) { return value != 0; })) << parameter->name;
    const Shape shape = parameter->global_shape();
    counted += shape.elements() / shape[0] * (shape[0] - parameter->padding_rows);
  }
  EXPECT_EQ(counted, count);
}

inline void move_parameters(Executor& executor, const std::vector<double>& direction, double distance) {
  std::size_t next = 0;
  for (const Parameter* parameter : trained_parameters(executor)) {
    std::vector<double> values = values_of(executor.backend(), parameter->value);
    for (double& value : values) value += distance * direction[next++];
    executor.backend().upload(parameter->value, values.data());
  }
}

// `executor` runs on the reference back end in f64, with initial weights.
inline void expect_gradient_is_the_derivative(Executor& executor, const MicroBatch& batch) {
  executor.forward_backward(batch);
  const std::vector<double> gradient = gradients_of(executor);
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 5; ++trial) {
    std::vector<double> direction(gradient.size());
    double length = 0, expected = 0;
    for (double& value : direction) length += std::pow(value = normal(random), 2);
    for (std::size_t i = 0; i < direction.size(); ++i) expected += gradient[i] * (direction[i] /= std::sqrt(length));
    // Central differences along a unit vector: truncation ~ h^2 = 1e-10 times the third derivative, rounding ~ 1e-11.
    const double h = 1e-5;
    move_parameters(executor, direction, h);
    const double above = executor.forward_backward(batch).total();
    move_parameters(executor, direction, -2 * h);
    const double below = executor.forward_backward(batch).total();
    move_parameters(executor, direction, h);
    EXPECT_NEAR((above - below) / (2 * h), expected, 1e-8);
  }
}

}  // namespace teratron::testing
