#include "telemetry/metrics_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "telemetry/metrics_log.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;
using Rows = std::vector<std::pair<std::int64_t, std::vector<Metric>>>;

class MetricsComparisonTest : public ::testing::Test {
 protected:
  MetricsComparison compare(const Rows& a, const Rows& b, double tolerance = 0) const {
    return compare_metrics(written("a", a), written("b", b), tolerance);
  }

  std::filesystem::path written(const std::string& name, const Rows& rows) const {
    const std::filesystem::path file = folder_.path() / name;
    std::filesystem::remove(file);
    MetricsLog log(file, 0);
    for (const auto& [iteration, metrics] : rows) log.write(iteration, metrics);
    return file;
  }

  static std::vector<Metric> update(double loss, double norm, double seconds) {
    return {{"kind", std::string("iteration")}, {"loss", loss}, {"gradient_norm", norm}, {"seconds", seconds}};
  }
  static std::vector<Metric> validation(double loss) {
    return {{"kind", std::string("validation")}, {"validation_loss", loss}};
  }

  const TemporaryFolder folder_;
};

TEST_F(MetricsComparisonTest, TimesDoNotCountAndTheLastBitOfALossDoes) {
  const double loss = 1.0 / 3;
  EXPECT_FALSE(compare({{1, update(loss, 2, 0.1)}}, {{1, update(loss, 2, 0.7)}}).first_difference);
  const MetricsComparison found = compare({{1, update(loss, 2, 0.1)}, {2, update(loss, 2, 0.1)}},
                                          {{1, update(loss, 2, 0.1)}, {2, update(std::nextafter(loss, 1), 2, 0.1)}});
  ASSERT_TRUE(found.first_difference);
  EXPECT_EQ(found.first_difference->iteration, 2);
  EXPECT_EQ(found.first_difference->kind, "iteration");
  EXPECT_EQ(found.first_difference->metric, "loss");
  EXPECT_EQ(found.first_difference->a, "0.3333333333333333");
  EXPECT_EQ(found.lines, 2);
}

TEST_F(MetricsComparisonTest, MemoryDoesNotCountEither) {
  const auto holding = [](std::int64_t bytes, std::int64_t planned) {
    return std::vector<Metric>{{"loss", 1.0}, {"memory_bytes", bytes}, {"planned_memory_bytes", planned}};
  };
  EXPECT_FALSE(compare({{1, holding(1, 2)}}, {{1, holding(3, 4)}}).first_difference);
}

TEST_F(MetricsComparisonTest, LinesOfOneFileAloneAreLeftOut) {
  const MetricsComparison found =
      compare({{1, update(1, 2, 0)}, {2, update(3, 4, 0)}, {2, validation(5)}, {4, update(6, 7, 0)}},
              {{2, update(3, 4, 0)}, {3, update(9, 9, 0)}, {4, update(6, 8, 0)}});
  EXPECT_EQ(found.first, 2);
  EXPECT_EQ(found.last, 4);
  ASSERT_TRUE(found.first_difference);
  EXPECT_EQ(found.first_difference->metric, "gradient_norm");
  EXPECT_EQ(compare({{1, update(1, 2, 0)}}, {{2, update(1, 2, 0)}}).lines, 0);
}

TEST_F(MetricsComparisonTest, EverySampleOfAnIterationCounts) {
  const auto sample = [](const char* text) {
    return std::vector<Metric>{{"kind", std::string("sample")}, {"text", std::string(text)}};
  };
  const Rows a = {{1, update(1, 2, 0)}, {1, sample("a")}, {1, sample("b")}, {1, sample("c")}};
  EXPECT_EQ(compare(a, a).lines, 4);
  for (const std::size_t other : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    Rows b = a;
    b[other].second = sample("other");
    const MetricsComparison found = compare(a, b);
    ASSERT_TRUE(found.first_difference) << other;
    EXPECT_EQ(found.first_difference->kind, "sample");
    EXPECT_EQ(found.first_difference->b, "\"other\"");
  }
  const MetricsComparison fewer = compare(a, {a[0], a[1]});
  EXPECT_EQ(fewer.lines, 2) << "samples of one file alone are left out";
  EXPECT_FALSE(fewer.first_difference);
}

TEST_F(MetricsComparisonTest, OfAnIterationThatALogRepeatsTheLaterLinesCount) {
  const Rows whole = {{1, update(1, 2, 0)}, {2, update(3, 4, 0)}, {2, validation(5)}, {3, update(6, 7, 0)}};
  const Rows repeated = {{1, update(1, 2, 0)}, {2, update(9, 9, 0)}, {2, validation(9)},  {3, update(9, 9, 0)},
                         {2, update(3, 4, 0)}, {2, validation(5)},   {3, update(6, 7, 0)}};
  const Rows validated_again = {{1, update(1, 2, 0)}, {2, update(3, 4, 0)}, {2, validation(9)},
                                {3, update(9, 9, 0)}, {2, validation(5)},   {3, update(6, 7, 0)}};
  for (const Rows& other : {repeated, validated_again}) {
    EXPECT_EQ(compare(whole, other).lines, 4);
    EXPECT_FALSE(compare(whole, other).first_difference);
    EXPECT_FALSE(compare(other, whole).first_difference);
  }
}

TEST_F(MetricsComparisonTest, ToleranceIsAShareOfTheLargerNumber) {
  EXPECT_FALSE(compare({{1, validation(100)}}, {{1, validation(101)}}, 0.01).first_difference);
  EXPECT_TRUE(compare({{1, validation(100)}}, {{1, validation(101.1)}}, 0.01).first_difference);
}

TEST_F(MetricsComparisonTest, ATornLastLineIsLeftOutAndAnotherFileIsAnError) {
  const std::filesystem::path log = folder_.path() / "log";
  write_file_atomically(log, "{\"iteration\": 1, \"loss\": 2}\n{\"iteration\": 2, \"lo");
  EXPECT_EQ(compare_metrics(log, log).lines, 1);
  write_file_atomically(log, "{\"iteration\": 1, \"loss\": 2}\n" + std::string(9, '\0') + "\n{\"iteration\": 4}\n");
  EXPECT_EQ(compare_metrics(log, log).lines, 1) << "zeros of a power failure end it, as for a run that goes on";
  write_file_atomically(log, "{\"iteration\": 1}\nloss 2\n");
  EXPECT_THAT([&] { compare_metrics(log, log); }, ::testing::ThrowsMessage<UserError>(HasSubstr("line 2 of")));
}

}  // namespace
}  // namespace teratron::testing
