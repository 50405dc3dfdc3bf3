// The reference back end against values worked out by hand or known from the literature: what all other tests lean on.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

class Reference : public ::testing::Test {
 protected:
  Tensor tensor(const Shape& shape, const Values& values) { return make_tensor(*backend_, shape, values); }
  void expect_values(const Tensor& actual, const Values& expected, double tolerance = 1e-14) {
    const Values values = download_values(*backend_, actual);
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t e = 0; e < values.size(); ++e) EXPECT_NEAR(values[e], expected[e], tolerance) << "element " << e;
  }
  std::unique_ptr<Backend> backend_ = make_reference_backend(DType::kF64);
};

TEST_F(Reference, LinearMultipliesByTheTransposedWeightAndAddsTheBias) {
  const Tensor x = tensor({1, 2}, {10, 1}), weight = tensor({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor bias = tensor({3}, {100, 200, 300}), y = make_poisoned(*backend_, {1, 3});
  backend_->linear_forward({.y = y, .x = x, .weight = weight, .bias = bias});
  expect_values(y, {112, 234, 356});
}

// x * Phi(x) with the tabulated normal distribution: Phi(1) = 0.8413447460685429, Phi(2) = 0.9772498680518208.
TEST_F(Reference, GeluErfIsTheNormalDistributionTimesX) {
  const Tensor x = tensor({4, 1}, {-1, 0, 1, 2}), one = tensor({1, 1}, {1});
  const Tensor y = make_poisoned(*backend_, {4, 1}), activated = make_poisoned(*backend_, {4, 1});
  backend_->linear_forward({.y = y, .x = x, .weight = one, .activation = Activation::kGeluErf, .activated = activated});
  expect_values(y, {-1, 0, 1, 2});
  expect_values(activated, {-0.1586552539314571, 0, 0.8413447460685429, 1.9544997361036416});
}

// The approximation is within 5e-4 of the exact function everywhere, and differs from it.
TEST_F(Reference, GeluTanhIsCloseToGeluErf) {
  Values points;
  for (int i = -600; i <= 600; ++i) points.push_back(i / 100.0);
  const auto rows = static_cast<std::int64_t>(points.size());
  const Tensor x = tensor({rows, 1}, points), one = tensor({1, 1}, {1}), y = make_poisoned(*backend_, {rows, 1});
  const Tensor exact = make_poisoned(*backend_, {rows, 1}), approximate = make_poisoned(*backend_, {rows, 1});
  backend_->linear_forward({.y = y, .x = x, .weight = one, .activation = Activation::kGeluErf, .activated = exact});
  backend_->linear_forward(
      {.y = y, .x = x, .weight = one, .activation = Activation::kGeluTanh, .activated = approximate});
  expect_values(approximate, download_values(*backend_, exact), 5e-4);
  EXPECT_NEAR(download_values(*backend_, approximate)[700], 0.8411919906082768, 1e-14);  // at x = 1
}

TEST_F(Reference, LayerNormGivesEveryRowMeanZeroAndDeviationOne) {
  const Tensor x = tensor({2, 4}, {1, 2, 3, 4, -10, 0, 10, 40}), gamma = tensor({4}, {1, 1, 1, 1});
  const Tensor beta = tensor({4}, {0, 0, 0, 0}), y = make_poisoned(*backend_, {2, 4});
  const Tensor mean = make_poisoned(*backend_, {2}), rstd = make_poisoned(*backend_, {2});
  backend_->norm_forward({.y = y, .mean = mean, .rstd = rstd, .x = x, .gamma = gamma, .beta = beta, .epsilon = 0});
  expect_values(mean, {2.5, 10});
  expect_values(rstd, {1 / std::sqrt(1.25), 1 / std::sqrt(350.0)});
  const Values values = download_values(*backend_, y);
  for (std::size_t row = 0; row < 2; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      sum += values[row * 4 + j];
      squares += values[row * 4 + j] * values[row * 4 + j];
    }
    EXPECT_NEAR(sum, 0, 1e-14);
    EXPECT_NEAR(squares / 4, 1, 1e-14);
  }
}

// With equal scores every query gets the mean of the values it may see.
TEST_F(Reference, CausalAttentionWithEqualScoresIsTheRunningMean) {
  const Tensor q = tensor({1, 3, 1, 1}, {0, 0, 0}), k = tensor({1, 4, 1, 1}, {5, -3, 2, 7});
  const Tensor v = tensor({1, 4, 1, 1}, {1, 2, 6, 11}), out = make_poisoned(*backend_, {1, 3, 1, 1});
  const Tensor log_sum_exp = make_poisoned(*backend_, {1, 1, 3});
  backend_->attention_forward({.out = out, .log_sum_exp = log_sum_exp, .q = q, .k = k, .v = v, .scale = 1});
  expect_values(out, {1.5, 3, 5});
  expect_values(log_sum_exp, {std::log(2.0), std::log(3.0), std::log(4.0)});
}

TEST_F(Reference, AttentionWeighsValuesByTheSoftmaxOfTheScaledScores) {
  const Tensor q = tensor({1, 1, 1, 2}, {1, 2}), k = tensor({1, 2, 1, 2}, {3, 4, 0, 1});
  const Tensor v = tensor({1, 2, 1, 2}, {1, 0, 0, 1}), out = make_poisoned(*backend_, {1, 1, 1, 2});
  const Tensor log_sum_exp = make_poisoned(*backend_, {1, 1, 1});
  backend_->attention_forward({.out = out, .log_sum_exp = log_sum_exp, .q = q, .k = k, .v = v, .scale = 0.5});
  const double odds = std::exp(5.5 - 1);  // scores 11 and 2, halved
  expect_values(out, {odds / (1 + odds), 1 / (1 + odds)});
  expect_values(log_sum_exp, {std::log(std::exp(5.5) + std::exp(1))});
}

TEST_F(Reference, CrossEntropyOfEqualLogitsIsTheLogarithmOfTheValidVocabulary) {
  const Tensor logits = tensor({1, 5}, {3, 3, 3, 100, 100}), targets = make_ids(*backend_, {1}, {2});
  const Tensor max = make_poisoned(*backend_, {1}), sum = make_poisoned(*backend_, {1});
  const Tensor target_logit = make_poisoned(*backend_, {1}), loss = make_poisoned(*backend_, {1});
  backend_->cross_entropy_partials(
      {.max = max, .sum = sum, .target_logit = target_logit, .logits = logits, .targets = targets, .valid_columns = 3});
  backend_->cross_entropy_loss({.loss = loss, .max = max, .sum = sum, .target_logit = target_logit});
  expect_values(loss, {std::log(3.0)});
  backend_->cross_entropy_backward(
      {.logits = logits, .max = max, .sum = sum, .targets = targets, .weight = tensor({1}, {6}), .valid_columns = 3});
  expect_values(logits, {2, 2, -4, 0, 0});
}

// Two sequences of two rows each; the second one's target lies in its padding, so that it has no term.
TEST_F(Reference, CrossEntropyOfSequencesCountsTheColumnsOfTheirLengths) {
  const Tensor logits = tensor({4, 3}, {1, 9, 9, 2, 9, 9, 5, 5, 9, 7, 7, 9}),
               lengths = make_ids(*backend_, {2}, {1, 2});
  const Tensor targets = make_ids(*backend_, {4}, {0, 0, 1, 2});
  const Tensor max = make_poisoned(*backend_, {4}), sum = make_poisoned(*backend_, {4});
  const Tensor target_logit = make_poisoned(*backend_, {4});
  backend_->cross_entropy_partials({.max = max,
                                    .sum = sum,
                                    .target_logit = target_logit,
                                    .logits = logits,
                                    .targets = targets,
                                    .lengths = lengths,
                                    .valid_columns = 3});
  expect_values(max, {1, 2, 5, 7});
  expect_values(sum, {1, 1, 2, 2});
  expect_values(target_logit, {1, 2, 5, 0});
  backend_->cross_entropy_backward({.logits = logits,
                                    .max = max,
                                    .sum = sum,
                                    .targets = targets,
                                    .weight = tensor({4}, {1, 1, 2, 4}),
                                    .lengths = lengths,
                                    .valid_columns = 3});
  expect_values(logits, {0, 0, 0, 0, 0, 0, 1, -1, 0, 2, 2, 0});
}

TEST_F(Reference, AVocabularyPartThatIsAllPaddingAddsNothing) {
  const Tensor logits = tensor({1, 2}, {3, 4}), targets = make_ids(*backend_, {1}, {0});
  const Tensor max = make_poisoned(*backend_, {1}), sum = make_poisoned(*backend_, {1});
  const Tensor target_logit = make_poisoned(*backend_, {1});
  backend_->cross_entropy_partials(
      {.max = max, .sum = sum, .target_logit = target_logit, .logits = logits, .targets = targets});
  EXPECT_EQ(download_values(*backend_, max), Values{-INFINITY});
  expect_values(sum, {0});
  expect_values(target_logit, {0});
}

// Three steps of the update written out with scalars; the gradient is halved, as a clip coefficient would.
TEST_F(Reference, AdamWFollowsTheUpdateOfThePaper) {
  const double rate = 0.1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-3, decay = 0.2;
  double p = 1.5, m = 0, v = 0;
  const Tensor parameter = tensor({1}, {p}), moment1 = tensor({1}, {0}), moment2 = tensor({1}, {0});
  for (int step = 1; step <= 3; ++step) {
    const double gradient = step == 2 ? -3 : 2, clipped = gradient / 2;
    m = beta1 * m + (1 - beta1) * clipped;
    v = beta2 * v + (1 - beta2) * clipped * clipped;
    const double m_hat = m / (1 - std::pow(beta1, step)), v_hat = v / (1 - std::pow(beta2, step));
    p = p - rate * (m_hat / (std::sqrt(v_hat) + epsilon) + decay * p);
    const Tensor gradients = tensor({1}, {gradient});
    backend_->adamw({.parameters = {{.value = parameter,
                                     .gradient = gradients,
                                     .moment1 = moment1,
                                     .moment2 = moment2,
                                     .weight_decay = decay}},
                     .learning_rate = rate,
                     .beta1 = beta1,
                     .beta2 = beta2,
                     .epsilon = epsilon,
                     .correction1 = 1 - std::pow(beta1, step),
                     .correction2 = 1 - std::pow(beta2, step),
                     .gradient_scale = 0.5});
    expect_values(parameter, {p});
    expect_values(moment1, {m});
    expect_values(moment2, {v});
  }
}

TEST_F(Reference, EmbeddingAddsTheTokensRowAndThePositionsRow) {
  const Tensor tokens = tensor({2, 2}, {1, 2, 3, 4}), positions = tensor({4, 2}, {0, 0, 10, 20, 30, 40, 50, 60});
  const Tensor ids = make_ids(*backend_, {1, 3}, {8, 7, 6}), y = make_poisoned(*backend_, {1, 3, 2});
  backend_->embedding_forward(
      {.y = y, .ids = ids, .tokens = tokens, .positions = positions, .first_position = 1, .vocab_begin = 7});
  expect_values(y, {13, 24, 31, 42, 50, 60});
}

TEST_F(Reference, SumOfSquaresIsASum) { EXPECT_EQ(backend_->sum_of_squares(tensor({3}, {1, -2, 3})), 14); }

}  // namespace
}  // namespace teratron::testing
