// The order of a blend against counting: every entry of some periods, for random weights.
#include "data/samples/blend_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace teratron::testing {
namespace {

class BlendOrders : public ::testing::Test {
 protected:
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_); }

  // Two corpora to `most`, of shares up to some hundred times as large as others.
  std::vector<double> random_weights(std::int64_t most, std::int64_t decimals) {
    const double spread = 0.5 + static_cast<double>(below(3));
    const double unit = std::pow(10.0, static_cast<double>(decimals));
    std::vector<double> weights(static_cast<std::size_t>(2 + below(most - 1)));
    for (double& weight : weights) {
      weight = std::pow(10.0, spread * std::uniform_real_distribution<>(-1, 0)(random_));
      if (decimals < 9) weight = std::max(1.0, std::round(weight * unit)) / unit;
    }
    return weights;
  }

  std::mt19937_64 random_{1};
};

TEST_F(BlendOrders, EveryBeginningHasTheSharesOfTheWeightsWithinLessThanASample) {
  for (int round = 0; round < 80; ++round) {
    const std::vector<double> weights = random_weights(round % 2 == 0 ? 4 : 12, 1 + below(3));
    const BlendOrder order(weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    // The promise, and the rounding errors of this sum.
    const double bound = 1 - 1 / (2 * static_cast<double>(weights.size()) - 2) + 1e-6;
    std::vector<std::int64_t> counts(weights.size());
    for (std::int64_t n = 0; n < std::min<std::int64_t>(3 * order.period(), 5000); ++n) {
      const BlendOrder::Entry entry = order.entry(n);
      ASSERT_LT(entry.corpus, weights.size());
      ASSERT_EQ(entry.sample, counts[entry.corpus]++) << "position " << n;
      ASSERT_EQ(order.position(entry), n);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        ASSERT_EQ(order.count(i, n + 1), counts[i]);
        ASSERT_LE(std::abs(static_cast<double>(counts[i]) - static_cast<double>(n + 1) * weights[i] / total), bound)
            << "corpus " << i << " of " << weights.size() << " after " << n + 1;
      }
    }
  }
}

// Weights of which no period fits a table, at positions up to 10^10 and beyond, against n * w / sum in long double.
TEST_F(BlendOrders, SharesOfAnyWeightsStayExactHoweverFarOutInTheRun) {
  for (int round = 0; round < 300; ++round) {
    std::vector<double> weights = round % 3 == 0 ? std::vector{0.123456789, 0.876543211} : random_weights(12, 9);
    if (round % 3 == 1) weights.resize(std::min<std::size_t>(weights.size(), 3));
    if (round % 10 == 5) weights.back() = 1e-9;
    const BlendOrder order(weights);
    ASSERT_EQ(order.period(), 0);
    const long double total = std::accumulate(weights.begin(), weights.end(), 0.0L);
    const auto corpora = static_cast<double>(weights.size());
    for (int i = 0; i < 40; ++i) {
      const std::int64_t n = below(std::int64_t{1} << below(45));
      const BlendOrder::Entry entry = order.entry(n);
      ASSERT_EQ(entry.sample, order.count(entry.corpus, n));
      ASSERT_EQ(order.position(entry), n);
      std::int64_t all = 0;
      for (std::size_t corpus = 0; corpus < weights.size(); ++corpus) {
        const std::int64_t count = order.count(corpus, n);
        ASSERT_EQ(order.count(corpus, n + 1), count + (corpus == entry.corpus ? 1 : 0));
        const long double share = weights[corpus] / total, off = static_cast<long double>(count) - share * n;
        const double bound = 0.5 + static_cast<double>(share) * (corpora - 2) / 2;
        ASSERT_LT(std::abs(static_cast<double>(off)), bound + 1e-5) << corpora << " corpora, after " << n;
        ASSERT_LT(std::abs(static_cast<double>(off)), weights.size() <= 3 ? 1 : bound + 1);
        all += count;
      }
      ASSERT_EQ(all, n);
    }
  }
}

TEST_F(BlendOrders, AnyPositionCanBeAskedFarOutInTheRun) {
  for (int round = 0; round < 12; ++round) {
    const BlendOrder order(random_weights(5, 1 + below(3)));
    const std::int64_t far = below(std::int64_t{1} << 40) * order.period();
    for (int i = 0; i < 100; ++i) {
      const std::int64_t position = below(order.period());
      const BlendOrder::Entry near_place = order.entry(position), entry = order.entry(far + position);
      ASSERT_EQ(entry.corpus, near_place.corpus);
      ASSERT_EQ(entry.sample, near_place.sample + far / order.period() * order.shares()[entry.corpus]);
      ASSERT_EQ(order.position(entry), far + position);
    }
  }
}

// Known by hand: 0.7 and 0.3 are 7 and 3 of 10, and alike weights take turns.
TEST_F(BlendOrders, SmallWeightsHaveSmallPeriods) {
  const auto shares = [](std::vector<double> weights) {
    const BlendOrder order(weights);
    return std::vector<std::int64_t>(order.shares().begin(), order.shares().end());
  };
  EXPECT_EQ(shares({0.7, 0.3}), (std::vector<std::int64_t>{7, 3}));
  EXPECT_EQ(shares({70, 30}), (std::vector<std::int64_t>{7, 3}));
  EXPECT_EQ(shares({2, 2, 2}), (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_EQ(shares({5}), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(shares({0.333333, 0.666667}), (std::vector<std::int64_t>{333333, 666667}));
}

TEST_F(BlendOrders, WeightsOfAnySizeHaveAnOrder) {
  const BlendOrder apart(std::vector{1e300, 1e-300}), huge(std::vector{1e308, 1e308, 1e308});
  EXPECT_EQ(apart.entry(std::int64_t{1} << 50), (BlendOrder::Entry{0, std::int64_t{1} << 50}));
  for (std::int64_t n = 0; n < 30; ++n) {
    EXPECT_EQ(huge.entry(n), (BlendOrder::Entry{static_cast<std::size_t>(n % 3), n / 3}));
  }
  // Its tenth sample would be the 2^62 * 10th.
  EXPECT_EQ(apart.position({.corpus = 1, .sample = 10}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(apart.position({.corpus = 0, .sample = 10}), 10);
}

TEST_F(BlendOrders, ManyCorporaWithOneThatIsTiny) {
  std::vector<double> weights(BlendOrder::kMostCorpora, 4.0);
  weights[17] = 1;
  const BlendOrder order(weights);
  EXPECT_EQ(order.period(), 4 * 254 + 1);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(order.count(i, order.period()), i == 17 ? 1 : 4);
}

}  // namespace
}  // namespace teratron::testing
