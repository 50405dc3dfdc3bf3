// Attention where scores lie far apart, against its closed form in double: a query's maximum rises with the keys, by
// little or so far that what came before vanishes, or never rises again. Random trials, whose scores are about 1, do
// none of that.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/trials/trial.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kSize = 16;  // of a head

// One head without dropout. Score (i, j) is queries[i] * keys[j], and each of a key's values is values[j].
struct OneHead {
  Values queries, keys, values;
  bool causal = false;
};

struct Result {
  Values out, log_sum_exp;  // [queries]
};

Result expected_of(const OneHead& head) {
  Result result;
  const std::size_t context = head.keys.size() - head.queries.size();
  for (std::size_t i = 0; i < head.queries.size(); ++i) {
    const std::size_t seen = head.causal ? context + i + 1 : head.keys.size();
    double max = -std::numeric_limits<double>::infinity(), sum = 0, mixed = 0;
    for (std::size_t j = 0; j < seen; ++j) max = std::max(max, head.queries[i] * head.keys[j]);
    for (std::size_t j = 0; j < seen; ++j) {
      const double weight = std::exp(head.queries[i] * head.keys[j] - max);
      sum += weight;
      mixed += weight * head.values[j];
    }
    result.out.push_back(mixed / sum);
    result.log_sum_exp.push_back(max + std::log(sum));
  }
  return result;
}

// [1, rows, 1, kSize]: the first column, or all of them, hold the values.
Tensor rows_of(Backend& backend, const Values& values, bool in_all_columns) {
  Values rows(values.size() * kSize, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::fill_n(rows.begin() + static_cast<std::int64_t>(i) * kSize, in_all_columns ? kSize : 1, values[i]);
  }
  return make_tensor(backend, {1, static_cast<std::int64_t>(values.size()), 1, kSize}, rows);
}

Result computed(Backend& backend, const OneHead& head) {
  const auto queries = static_cast<std::int64_t>(head.queries.size());
  const Tensor q = rows_of(backend, head.queries, false), k = rows_of(backend, head.keys, false);
  const Tensor v = rows_of(backend, head.values, true), out = make_poisoned(backend, {1, queries, 1, kSize});
  const Tensor log_sum_exp = make_poisoned(backend, backend.accumulation_dtype(), {1, 1, queries});
  backend.attention_forward(
      {.out = out, .log_sum_exp = log_sum_exp, .q = q, .k = k, .v = v, .causal = head.causal, .scale = 1});
  Result result{{}, download_values(backend, log_sum_exp)};
  const Values all = download_values(backend, out);
  for (std::size_t i = 0; i < head.queries.size(); ++i) {
    result.out.push_back(all[i * kSize]);
    for (std::size_t d = 1; d < kSize; ++d) {
      const double first = all[i * kSize], value = all[i * kSize + d];
      EXPECT_TRUE(value == first || (std::isnan(value) && std::isnan(first))) << "query " << i << ", column " << d;
    }
  }
  return result;
}

// A profile of scores, one a key.
Values scores_like(int profile, std::size_t count, Random& random) {
  Values scores;
  for (std::size_t j = 0; j < count; ++j) {
    const auto position = static_cast<double>(j);
    switch (profile) {
      case 0: scores.push_back(std::floor(position / 16)); break;                               // 40 in all
      case 1: scores.push_back(position / 2); break;                                            // 350
      case 2: scores.push_back(j % 150 == 149 ? position : static_cast<double>(j % 7)); break;  // peaks
      case 3: scores.push_back(8 * position - 2800); break;                                     // all but one vanish
      default: scores.push_back(static_cast<double>(random.below(200) - 100)); break;
    }
  }
  return scores;
}

// Those that matter are near the maximum, where a score's product rounds as the maximum's does. Values are about 1, at
// most 4; where products are in bf16, so are weights.
TEST(AttentionScores, FarApartGiveTheClosedForm) {
  Random random(9);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const bool bf16_products : {false, true}) {
      const auto backend = make_cpu_backend({.compute_dtype = dtype, .bf16_products = bf16_products});
      for (int profile = 0; profile < 5; ++profile) {
        for (const std::size_t queries : {std::size_t{3}, std::size_t{50}}) {  // one by one, and in blocks
          OneHead head{.causal = random.coin()};
          constexpr std::size_t kKeys = 700;  // several blocks
          head.keys = rounded(scores_like(profile, kKeys, random), dtype);
          head.values = rounded(random.normals({kKeys}), dtype);
          for (std::size_t i = 0; i < queries; ++i) head.queries.push_back(i % 2 == 0 ? 1 : -1);  // rise, and fall
          const Result actual = computed(*backend, head), expected = expected_of(head);
          const double tolerance = 1e-5 + 8 * rounding_of(dtype).relative;
          for (std::size_t i = 0; i < queries; ++i) {
            ASSERT_NEAR(actual.out[i], expected.out[i], tolerance)
                << name_of(dtype) << ", profile " << profile << ", query " << i << " of " << queries;
            ASSERT_NEAR(actual.log_sum_exp[i], expected.log_sum_exp[i],
                        4 * kUnitRoundoff * (std::abs(expected.log_sum_exp[i]) + 10))
                << name_of(dtype) << ", profile " << profile << ", query " << i << " of " << queries;
          }
        }
      }
    }
  }
}

// Two keys matter, of scores 0 and -x, so that a query's output is the weight of the second. Its exponent is rounded
// once or twice, by x unit roundoffs each, and the exponential is within two units in the last place, four roundoffs.
TEST(AttentionScores, WeightsAreExponentialsToTheLastBits) {
  const auto backend = make_cpu_backend({});
  OneHead head;
  constexpr std::size_t kCount = 1000;
  for (std::size_t i = 0; i < kCount; ++i) {
    head.queries.push_back(static_cast<double>(0.05F + 0.085F * static_cast<float>(i)));  // as far as e^-85
    head.keys.push_back(i == 0 ? 0 : i == 1 ? -1 : -1e4);
    head.values.push_back(i == 1 ? 1 : 0);
  }
  head.queries = rounded(head.queries, DType::kF32);
  const Result actual = computed(*backend, head), expected = expected_of(head);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double roundoffs = 2 * head.queries[i] + 8;
    ASSERT_NEAR(actual.out[i] / expected.out[i], 1, roundoffs * kUnitRoundoff) << "x = " << head.queries[i];
  }
}

// A run that diverges shows it, wherever in a row of scores it begins.
TEST(AttentionScores, NotANumberReachesTheQueriesThatSeeIt) {
  const auto backend = make_cpu_backend({});
  Random random(4);
  constexpr std::size_t kCount = 260;
  for (const std::size_t at : {0, 15, 16, 100, 200, 259}) {
    OneHead head{.queries = random.normals({kCount}), .keys = random.normals({kCount}), .causal = true};
    head.values = random.normals({kCount});
    head.keys[at] = std::numeric_limits<double>::quiet_NaN();
    const Result actual = computed(*backend, head);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(std::isnan(actual.out[i]), i >= at) << "key " << at << ", query " << i;
      ASSERT_EQ(std::isnan(actual.log_sum_exp[i]), i >= at) << "key " << at << ", query " << i;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
