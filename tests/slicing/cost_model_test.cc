#include "slicing/cost/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/philox.h"

namespace teratron::testing {
namespace {

using namespace slicing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Normal equations, solved by Cramer's rule in two unknowns: nothing in common with reflections.
TEST(LeastSquares, SolvesTheNormalEquationsOfTwoUnknowns) {
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<std::vector<double>> rows;
    std::vector<double> b;
    double xx = 0, xy = 0, yy = 0, xb = 0, yb = 0;
    for (std::uint64_t i = 3 + random.below(10); i > 0; --i) {
      const double x = random.uniform() - 0.5, y = random.uniform() - 0.5, value = random.uniform();
      rows.push_back({x, y});
      b.push_back(value);
      xx += x * x;
      xy += x * y;
      yy += y * y;
      xb += x * value;
      yb += y * value;
    }
    const double determinant = xx * yy - xy * xy;
    if (determinant < 1e-3) continue;  // squared conditions would drown the comparison
    const auto solution = least_squares(rows, b);
    ASSERT_TRUE(solution);
    ASSERT_NEAR((*solution)[0], (xb * yy - yb * xy) / determinant, 1e-9);
    ASSERT_NEAR((*solution)[1], (yb * xx - xb * xy) / determinant, 1e-9);
  }
}

TEST(LeastSquares, LeavesAResidualAcrossEveryColumn) {
  RandomSequence random(RandomStream{.seed = 2});
  for (int trial = 0; trial < 100; ++trial) {
    const std::size_t unknowns = 1 + random.below(5), count = unknowns + random.below(8);
    std::vector<std::vector<double>> rows(count);
    std::vector<double> b(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < unknowns; ++j) rows[i].push_back((random.uniform() - 0.5) * std::pow(1000.0, j));
      b[i] = random.uniform();
    }
    const auto x = least_squares(rows, b);
    ASSERT_TRUE(x);
    for (std::size_t j = 0; j < unknowns; ++j) {
      double product = 0, length = 0;
      for (std::size_t i = 0; i < count; ++i) {
        double residual = b[i];
        for (std::size_t k = 0; k < unknowns; ++k) residual -= rows[i][k] * (*x)[k];
        product += residual * rows[i][j];
        length += rows[i][j] * rows[i][j];
      }
      ASSERT_NEAR(product / std::sqrt(length), 0, 1e-8);
    }
  }
}

TEST(LeastSquares, HasNoAnswerForDependentColumnsOrTooFewRows) {
  EXPECT_FALSE(least_squares({{1, 2}, {2, 4}, {3, 6}}, std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(least_squares({{1, 0}, {2, 0}}, std::vector<double>{1, 2}));
  EXPECT_FALSE(least_squares({{1, 2}}, std::vector<double>{1}));
  EXPECT_FALSE(least_squares({}, {}));
}

struct Truth {
  double floor = 0.3, rate = 0.01;
  std::array<double, 4> context = {0.05, 0.0004, 0.0001, 0.00002};
  double operator()(std::int64_t length, std::int64_t c) const {
    const auto l = static_cast<double>(length), x = static_cast<double>(c);
    const double alone = floor + rate * l + 1e-5 * l * l;
    return c == 0 ? alone : alone + context[0] + context[1] * l + context[2] * x + context[3] * l * x;
  }
};

// Every eighth length without context, and a few pairs; `noise` is relative.
std::vector<CostPoint> measured(const Truth& truth, double noise, RandomSequence& random) {
  std::vector<CostPoint> points;
  const auto add = [&](std::int64_t length, std::int64_t context) {
    points.push_back({length, context, truth(length, context) * (1 + noise * (2 * random.uniform() - 1))});
  };
  for (std::int64_t length = 8; length <= 512; length += 8) add(length, 0);
  for (std::int64_t length = 32; length <= 512; length += 96) {
    for (std::int64_t context = 64; context + length <= 1024; context += 160) add(length, context);
  }
  return points;
}

std::vector<CostPoint> held_out(const Truth& truth) {
  std::vector<CostPoint> points;
  for (std::int64_t length = 16; length <= 512; length += 40) {
    for (std::int64_t context = 100; context + length <= 1024; context += 99) {
      points.push_back({length, context, truth(length, context)});
    }
  }
  return points;
}

TEST(CostModel, FindsTheCoefficientsThatThePointsWereMadeWith) {
  RandomSequence random(RandomStream{.seed = 3});
  const Truth truth;
  const CostModel model = fit_cost_model(measured(truth, 0, random));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(model.context[i], truth.context[i], 1e-9 * (1 + truth.context[i]));
  EXPECT_LT(relative_error(model, held_out(truth)).worst, 1e-9);
}

TEST(CostModel, ErrsLessThanItsMeasurements) {
  RandomSequence random(RandomStream{.seed = 4});
  const Truth truth;
  const RelativeError error = relative_error(fit_cost_model(measured(truth, 0.02, random)), held_out(truth));
  EXPECT_LT(error.mean, 0.02);
  EXPECT_GT(error.worst, error.mean);
  EXPECT_GT(error.mean, 0);
}

// Another program that runs for a moment makes passes longer, never shorter.
TEST(CostModel, DoesNotMindAFewMeasurementsThatSomethingDisturbed) {
  RandomSequence random(RandomStream{.seed = 5});
  const Truth truth;
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<CostPoint> points = measured(truth, 0.005, random);
    for (CostPoint& point : points) {
      if (random.below(12) == 0 && point.context > 0) point.milliseconds *= 1.2 + random.uniform();
    }
    ASSERT_LT(relative_error(fit_cost_model(points), held_out(truth)).mean, 0.01);
  }
}

// A machine with other work makes passes up to 55 times as long; a fit then gives a length a time below 0.
TEST(CostModel, HasPossibleTimesHoweverNoisyTheMachineIs) {
  RandomSequence random(RandomStream{.seed = 6});
  const Truth truth;
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<CostPoint> points;
    const auto add = [&](std::int64_t length, std::int64_t context) {
      points.push_back({length, context, truth(length, context) * std::exp(4 * random.uniform())});
    };
    for (const std::int64_t length : {4, 8, 12, 16, 24, 32}) add(length, 0);
    for (const std::int64_t length : {4, 8, 12}) {
      for (std::int64_t context = length; context + length <= 32; context += length) add(length, context);
    }
    const CostModel model = fit_cost_model(points);
    for (const std::int64_t length : model.lengths) ASSERT_GT(model.milliseconds(length, 0), 0) << trial;
  }
}

TEST(CostModel, BetweenMeasuredLengthsASliceAttendsToHalfOfItself) {
  const CostModel model{.lengths = {8, 16}, .without_context = {2, 6}, .context = {0, 0, 0, 0.1}};
  EXPECT_NEAR(model.milliseconds(12, 0), 4 - 0.1 / 2 * ((8.0 * 8 + 16 * 16) / 2 - 12 * 12), 1e-12);
}

TEST(CostModel, IsAStraightLineBetweenMeasuredLengths) {
  const CostModel model{.lengths = {8, 16}, .without_context = {2, 6}, .context = {1, 0, 0, 0}};
  EXPECT_EQ(model.milliseconds(8, 0), 2);
  EXPECT_EQ(model.milliseconds(10, 0), 3);
  EXPECT_EQ(model.milliseconds(16, 0), 6);
  EXPECT_EQ(model.milliseconds(16, 1), 7);
  EXPECT_THROW(static_cast<void>(model.milliseconds(17, 0)), InternalError);
}

TEST(CostModel, PutsShortSlicesBetweenTheirShareAndTheShortestMeasured) {
  const auto of = [](double first, double second, std::int64_t length) {
    return CostModel{.lengths = {8, 16}, .without_context = {first, second}}.milliseconds(length, 0);
  };
  EXPECT_EQ(of(5, 7, 4), 4);    // the line goes on
  EXPECT_EQ(of(2, 10, 4), 1);   // which would be below 0
  EXPECT_EQ(of(2, 1.5, 4), 2);  // which would be above the longer slice
}

TEST(LinearTime, GoesThroughPointsOnALineAndThroughTheMeanOfOneLength) {
  const std::vector<CostPoint> line = {{8, 0, -1 + 0.5 * 8}, {100, 3, -1 + 0.5 * 100}, {64, 9, -1 + 0.5 * 64}};
  const LinearTime fitted = fit_linear_time(line);
  EXPECT_NEAR(fitted.fixed, -1, 1e-12);
  EXPECT_NEAR(fitted.per_token, 0.5, 1e-12);
  const std::vector<CostPoint> one_length = {{8, 0, 3}, {8, 8, 5}};
  EXPECT_DOUBLE_EQ(fit_linear_time(one_length).of(8), 4);
}

TEST(CostModel, RefusesPointsThatDoNotShowWhatContextCosts) {
  const auto refusal = [](std::vector<CostPoint> points) { return [points] { fit_cost_model(points); }; };
  const CostPoint alone{8, 0, 1}, longer{16, 0, 2};
  EXPECT_THAT(refusal({alone, longer, {8, 8, 2}, {8, 16, 3}, {8, 24, 4}, {8, 32, 5}}),
              ThrowsMessage<UserError>(HasSubstr("two lengths or more")));
  EXPECT_THAT(refusal({alone, longer}), ThrowsMessage<UserError>(HasSubstr("0 measurements")));
  EXPECT_THAT(refusal({alone, {16, 8, 2}}), ThrowsMessage<UserError>(HasSubstr("none as long without")));
  EXPECT_THAT(refusal({{8, 0, 0}}), ThrowsMessage<UserError>(HasSubstr("0 ms, which no slice does")));
  EXPECT_THAT(refusal({{8, 0, std::nan("")}}), ThrowsMessage<UserError>(HasSubstr("no slice does")));
}

}  // namespace
}  // namespace teratron::testing
