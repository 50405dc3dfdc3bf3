// Initial weights depend on the seed and the global element alone: the same on every back end, however they are split.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/back_ends.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kCount = 10007;
constexpr double kDeviation = 0.02;
const RandomStream kStream{.seed = 1234567890123, .purpose = RandomPurpose::kInit, .stream = 42};

Values fill(Backend& backend, std::int64_t first_index, std::int64_t count) {
  const Tensor tensor = make_poisoned(backend, {count});
  backend.fill_normal(tensor, kStream, first_index, kDeviation);
  return download_values(backend, tensor);
}

class FillNormal : public ::testing::TestWithParam<BackEnd> {
 protected:
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(FillNormal, RoundsTheDefinitionsValuesOnce) {
  const Values values = fill(*backend_, 0, kCount);
  for (std::int64_t n = 0; n < kCount; ++n) {
    const PhiloxCounter words = kStream.bits(static_cast<std::uint64_t>(n) / 2);
    const double value = kDeviation * normal_from_bits(words[0], words[1])[static_cast<std::size_t>(n % 2)];
    ASSERT_EQ(values[static_cast<std::size_t>(n)], rounded({value}, backend_->compute_dtype())[0]) << "element " << n;
  }
}

TEST_P(FillNormal, IsTheSameHoweverItIsDivided) {
  const Values whole = fill(*backend_, 0, kCount);
  for (const std::int64_t begin : {1, 2, 4097, 10006}) {
    EXPECT_EQ(fill(*backend_, begin, kCount - begin), Values(whole.begin() + begin, whole.end())) << begin;
  }
}

// The ranks of a tensor-parallel layer fill its columns so.
TEST_P(FillNormal, BlocksOfColumnsMakeUpTheWholeMatrix) {
  constexpr std::int64_t kRows = 7, kColumns = 29;
  const Values whole = fill(*backend_, 3, kRows * kColumns);
  std::int64_t begin = 0;
  for (const std::int64_t end : {1, 12, 20, 29}) {
    const Tensor block = make_poisoned(*backend_, {kRows, end - begin});
    backend_->fill_normal(block, kStream, 3 + begin, kDeviation, kColumns);
    const Values values = download_values(*backend_, block);
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = begin; c < end; ++c) {
        EXPECT_EQ(values[static_cast<std::size_t>(r * (end - begin) + c - begin)],
                  whole[static_cast<std::size_t>(r * kColumns + c)]);
      }
    }
    begin = end;
  }
}

// Mean, variance and kurtosis of n values deviate by sqrt(1/n), sqrt(2/n) and sqrt(96/n) from 0, 1 and 3.
TEST_P(FillNormal, HasTheMomentsOfANormalDistribution) {
  double sum1 = 0, sum2 = 0, sum4 = 0;
  for (const double value : fill(*backend_, 0, kCount)) {
    const double x = value / kDeviation;
    sum1 += x;
    sum2 += x * x;
    sum4 += x * x * x * x;
  }
  const double n = kCount;
  EXPECT_NEAR(sum1 / n, 0, 4 * std::sqrt(1 / n));
  EXPECT_NEAR(sum2 / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(sum4 / n, 3, 4 * std::sqrt(96 / n));
}

INSTANTIATE_TEST_SUITE_P(Every, FillNormal, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
