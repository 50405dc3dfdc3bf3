#include "report/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <regex>

#include "base/error.h"
#include "report/svg.h"

namespace teratron::testing {
namespace {

using namespace svg;
using ::testing::HasSubstr;

// Where the numbers of the y axis begin, and where its title ends.
struct YAxis {
  double numbers = std::numeric_limits<double>::infinity(), title = 0;
};

YAxis y_axis_of(const std::string& svg) {
  YAxis axis;
  const std::regex number("x=\"([0-9.]+)\" y=\"[0-9.]+\" text-anchor=\"end\" font-size=\"([0-9]+)\">([^<]*)<");
  for (std::sregex_iterator it(svg.begin(), svg.end(), number), end; it != end; ++it) {
    axis.numbers = std::min(axis.numbers, std::stod((*it)[1]) - text_width((*it)[3].str(), std::stoi((*it)[2])));
  }
  std::smatch title;
  if (std::regex_search(svg, title, std::regex("rotate\\(-90 ([0-9.]+)"))) axis.title = std::stod(title[1]);
  return axis;
}

TEST(LineChart, TheTitleOfTheYAxisNeverLiesOnItsNumbers) {
  for (const double y : {0.0012, 1.7, 5500.0, 98765.0, 1e9, 1e15}) {
    const YAxis axis = y_axis_of(to_svg({"t", "slices", "milliseconds", {{"measured", {{1, y}, {2, y / 2}}}}}));
    EXPECT_GT(axis.title, 0);
    EXPECT_LT(axis.title, axis.numbers) << y;
  }
}

TEST(LineChart, PointsLieByTheLogarithmOfXAndByY) {
  const std::string svg = to_svg({"t", "x", "y", {{"a", {{1, 4}, {2, 2}, {4, 0}}}}});
  std::vector<double> x, y;
  const std::regex point("cx=\"([0-9.]+)\" cy=\"([0-9.]+)\" r=\"4");
  for (std::sregex_iterator it(svg.begin(), svg.end(), point), end; it != end; ++it) {
    x.push_back(std::stod((*it)[1]));
    y.push_back(std::stod((*it)[2]));
  }
  ASSERT_EQ(x.size(), 4U);  // first the legend's
  EXPECT_NEAR(x[2] - x[1], x[3] - x[2], 0.2);
  EXPECT_NEAR(y[2] - y[1], y[3] - y[2], 0.2);
  EXPECT_GT(y[2], y[1]);
}

TEST(LineChart, ASpreadIsALineFromTheLeastToTheLargestAndWidensTheAxis) {
  LineChart chart{"t", "x", "y", {{"a", {{1, 2}, {2, 3}}, {{1, 9}, {3, 3}}}}, 0};
  const std::string svg = to_svg(chart);
  std::vector<double> lengths;
  const std::regex upright("<line x1=\"([0-9.]+)\" y1=\"([0-9.]+)\" x2=\"([0-9.]+)\" y2=\"([0-9.]+)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), upright), end; it != end; ++it) {
    if ((*it)[1] == (*it)[3]) lengths.push_back(std::abs(std::stod((*it)[2]) - std::stod((*it)[4])));
  }
  ASSERT_EQ(lengths.size(), 2U);
  EXPECT_NEAR(lengths[0], 8.0 / 10 * (380 - 84 - 40), 0.2);  // of an axis to 10
  EXPECT_EQ(lengths[1], 0);
  chart.lines[0].spread.pop_back();
  EXPECT_THROW(to_svg(chart), InternalError);
}

TEST(LineChart, TheYAxisBeginsWhereAsked) {
  const LineChart chart{"t", "x", "y", {{"a", {{1, 6}, {2, 6.5}}}}, 6};
  const std::string svg = to_svg(chart);
  EXPECT_THAT(svg, HasSubstr(">6.5<"));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr(">0<")));
  EXPECT_THAT(svg, HasSubstr("cy=\"296.0\" r=\"4.0\""));  // the least, on the axis
  LineChart below = chart;
  below.y_least = 6.1;
  EXPECT_THROW(to_svg(below), InternalError);
}

TEST(LineChart, TheYAxisBeginsAtTheRoundValueBelowThePointsUnlessAsked) {
  const std::string svg = to_svg({"t", "x", "y", {{"a", {{1, 6.62}, {2, 6.1}}, {{6.6, 6.7}, {6.01, 6.1}}}}});
  EXPECT_THAT(svg, ::testing::AllOf(HasSubstr(">6.0<"), HasSubstr(">6.8<"), ::testing::Not(HasSubstr(">5"))));
  EXPECT_THAT(to_svg({"t", "x", "y", {{"a", {{1, -3}, {2, 7}}}}}),
              ::testing::AllOf(HasSubstr(">-5.0<"), HasSubstr(">0<")));
}

TEST(LineChart, EveryRangeHasItsPointsBetweenFewRoundTicks) {
  std::mt19937 random(1);
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  const std::regex number("text-anchor=\"end\" font-size=\"12\">([^<]*)<");
  for (int trial = 0; trial < 2000; ++trial) {
    const double low = draw(-20, 20), high = low + draw(0, 30);
    const std::string svg =
        to_svg({"t", "x", "y", {{"a", {{1, trial == 0 ? 3.9 : low}, {2, trial == 0 ? 12.3 : high}}}}});
    const auto labels = std::distance(std::sregex_iterator(svg.begin(), svg.end(), number), std::sregex_iterator());
    EXPECT_THAT(labels, ::testing::AllOf(::testing::Ge(2), ::testing::Le(7))) << low << " " << high;
  }
}

TEST(LineChart, ALongTitleIsSmallerAndFits) {
  const std::string title(80, 'W');
  EXPECT_THAT(to_svg({title, "x", "y", {{"a", {{1, 1}}}}}), HasSubstr("font-size=\"10\">" + title));
  EXPECT_THAT(to_svg({"short", "x", "y", {{"a", {{1, 1}}}}}), HasSubstr("font-size=\"14\">short"));
}

TEST(LineChart, NamesOfManyLinesTakeAsManyRowsAsTheyNeed) {
  LineChart chart{"t", "x", "y", {}};
  for (int i = 0; i < 12; ++i) chart.lines.push_back({"a line of its own " + std::to_string(i), {{1, 1}}});
  const std::string svg = to_svg(chart);
  const double width = 560;
  double height = 0, lowest = 0;
  std::smatch size;
  ASSERT_TRUE(std::regex_search(svg, size, std::regex("width=\"([0-9.]+)\" height=\"([0-9.]+)\"")));
  height = std::stod(size[2]);
  const std::regex name("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\"[^>]*>(a line[^<]*)<");
  int names = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), name), end; it != end; ++it, ++names) {
    EXPECT_LT(std::stod((*it)[1]) + text_width((*it)[3].str(), 12), width);
    lowest = std::max(lowest, std::stod((*it)[2]));
  }
  EXPECT_EQ(names, 12);
  EXPECT_GT(lowest, 380);
  EXPECT_LT(lowest, height);
}

TEST(LineChart, NothingToDrawIsAPictureTooAndWhatIsNotANumberIsNone) {
  EXPECT_TRUE(to_svg(LineChart{"t", "x", "y", {}}).ends_with("</svg>\n"));
  EXPECT_TRUE(to_svg({"t", "x", "y", {{"a", {{3, 0}}}}}).ends_with("</svg>\n"));
  EXPECT_THROW(to_svg({"t", "x", "y", {{"a", {{0, 1}}}}}), InternalError);
  EXPECT_THROW(to_svg({"t", "x", "y", {{"a", {{1, -1}}}}, 0}), InternalError);
  EXPECT_THROW(to_svg({"t", "x", "y", {{"a", {{1, std::nan("")}}}}}), InternalError);
}

}  // namespace
}  // namespace teratron::testing
