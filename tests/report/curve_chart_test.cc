#include "report/curve_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>

namespace teratron::testing {
namespace {

using namespace svg;
using ::testing::HasSubstr;
using ::testing::Not;

Points random_points(std::size_t count, std::mt19937& random) {
  Points points;
  double x = 0;
  for (std::size_t i = 0; i < count; ++i) {
    x += 1 + static_cast<double>(random() % 5);
    points.emplace_back(x, std::normal_distribution<double>(3, 1)(random));
  }
  return points;
}

std::vector<double> numbers_of(const std::string& svg, const char* pattern) {
  std::vector<double> numbers;
  const std::regex expression(pattern);
  for (std::sregex_iterator it(svg.begin(), svg.end(), expression), end; it != end; ++it) {
    numbers.push_back(std::stod((*it)[1]));
  }
  return numbers;
}

TEST(CurveChart, ManyPointsAreDrawnAsMeansWithinTheirSpread) {
  std::mt19937 random(1);
  for (const std::size_t count : {1U, 7U, 240U, 241U, 1000U, 5000U}) {
    const Points points = random_points(count, random);
    const DrawnCurve curve = drawn(points);
    if (count <= 240) {
      EXPECT_EQ(curve.means, points);
      EXPECT_TRUE(curve.spread.empty());
      continue;
    }
    ASSERT_EQ(curve.means.size(), curve.spread.size());
    EXPECT_LE(curve.means.size(), 241U);
    double least = curve.spread.front().first, largest = least;
    for (std::size_t i = 0; i < curve.means.size(); ++i) {
      EXPECT_LE(curve.spread[i].first, curve.means[i].second + 1e-12);
      EXPECT_GE(curve.spread[i].second, curve.means[i].second - 1e-12);
      if (i > 0) {
        EXPECT_LT(curve.means[i - 1].first, curve.means[i].first);
      }
      least = std::min(least, curve.spread[i].first);
      largest = std::max(largest, curve.spread[i].second);
    }
    const auto [low, high] = std::ranges::minmax_element(points, {}, &std::pair<double, double>::second);
    EXPECT_EQ(least, low->second);
    EXPECT_EQ(largest, high->second);
  }
}

TEST(CurveChart, AxesBeginWhereTheDataDoesAndNothingLeavesThePlot) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 50; ++trial) {
    const double scale = std::pow(10.0, static_cast<double>(random() % 13) - 6),
                 shift = static_cast<double>(random() % 3);
    Points points = random_points(1 + random() % 400, random);
    for (auto& point : points) point.second = scale * (point.second + 100 * shift);
    const std::string svg = to_svg({.title = "t", .x_axis = "updates", .curves = {{.name = "a", .points = points}}});
    const double left = numbers_of(svg, "data-left=\"([^\"]*)\"")[0],
                 floor = numbers_of(svg, "data-floor=\"([^\"]*)\"")[0];
    const double low = numbers_of(svg, "data-low-y=\"([^\"]*)\"")[0],
                 high = numbers_of(svg, "data-high-y=\"([^\"]*)\"")[0];
    const auto [least, largest] = std::ranges::minmax_element(points, {}, &std::pair<double, double>::second);
    if (points.size() > 1) {
      EXPECT_DOUBLE_EQ(low, least->second);
      EXPECT_DOUBLE_EQ(high, largest->second);
    }
    for (const double x : numbers_of(svg, " ([0-9.-]+),[0-9.-]+")) EXPECT_GE(x, left - 0.1);
    for (const double y : numbers_of(svg, "[0-9],([0-9.-]+)[ \"]")) EXPECT_LE(y, floor + 0.1);
    EXPECT_GE(left, 10) << "labels have a place";
    EXPECT_LT(left, 210) << "so has the plot";
    const std::size_t labels = numbers_of(svg, "text-anchor=\"end\" font-size=\"(1)").size();
    EXPECT_GE(labels, 2U) << svg;
    EXPECT_LE(labels, 6U);
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
}

TEST(CurveChart, ValuesThatDifferInTheirLastBitsHaveAFewTicks) {
  for (const double value : {0.1, 1.0, -3.0, 1e-9, 1e9}) {
    for (const double apart : {1e-14, 1e-15, 3e-16}) {
      const Points points = {{1, value}, {2, value * (1 + apart)}, {3, value}};
      const std::string svg = to_svg({.title = "t", .x_axis = "updates", .curves = {{.name = "a", .points = points}}});
      const std::size_t labels = numbers_of(svg, "text-anchor=\"end\" font-size=\"(1)").size();
      EXPECT_GE(labels, 2U) << value << " " << apart;
      EXPECT_LE(labels, 6U) << value << " " << apart;
    }
  }
}

TEST(CurveChart, NamesAreEscapedAndNoPointsAreAnEmptyPlot) {
  const std::string svg = to_svg({.title = "a \"b\" <c>", .x_axis = "x & y", .curves = {{.name = "a", .points = {}}}});
  EXPECT_THAT(svg, HasSubstr("aria-label=\"a &quot;b&quot; &lt;c&gt;\""));
  EXPECT_THAT(svg, HasSubstr("x &amp; y"));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace teratron::testing
