#include "report/bar_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <stack>

#include "report/svg.h"

namespace teratron::testing {
namespace {

using namespace svg;

// Every element that is opened is closed, in order.
void expect_well_formed(const std::string& svg) {
  std::stack<std::string> open;
  const std::regex tag("<(/?)([a-z]+)[^<>]*?(/?)>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    if ((*it)[1] == "/") {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.top(), (*it)[2]);
      open.pop();
    } else if ((*it)[3] != "/") {
      open.push((*it)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(BarChart, ABarIsAsHighAsItsValue) {
  const std::string svg = to_svg({{.title = "a < b & c",
                                   .axis = "speed",
                                   .series = {"here", "paper"},
                                   .groups = {{"one", {1.0, 0.5}}, {"two", {0.25, 0.75}}}}});
  expect_well_formed(svg);
  EXPECT_THAT(svg, ::testing::HasSubstr("a &lt; b &amp; c"));
  std::vector<double> heights;
  const std::regex bar("height=\"([0-9.]+)\" fill=\"#");
  for (std::sregex_iterator it(svg.begin(), svg.end(), bar), end; it != end; ++it)
    heights.push_back(std::stod((*it)[1]));
  ASSERT_EQ(heights.size(), 6U);  // two squares of the legend, four bars
  EXPECT_NEAR(heights[3] / heights[2], 0.5, 1e-3);
  EXPECT_NEAR(heights[4] / heights[2], 0.25, 1e-3);
  EXPECT_NEAR(heights[5] / heights[2], 0.75, 1e-3);
}

TEST(BarChart, ThePictureIsAsWideAsTheNumbersAboveTheBarsNeed) {
  BarChart chart{.title = "many", .axis = "s", .series = {"a", "b", "c"}, .groups = {}};
  for (int i = 0; i < 20; ++i) chart.groups.push_back({.label = "group", .values = {10.25, 3.5, 123.75}});
  const std::string svg = to_svg({chart});
  const std::regex bar("width=\"([0-9.]+)\" height=\"[0-9.]+\" fill=\"#");
  int bars = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), bar), end; it != end; ++it, ++bars) {
    if (bars < 3) continue;                                           // the legend's
    EXPECT_GE(std::stod((*it)[1]), text_width("123.75", 11) - 0.05);  // the file has tenths
  }
  EXPECT_EQ(bars, 63);
}

TEST(BarChart, NothingToDrawIsAPictureToo) {
  expect_well_formed(to_svg({}));
  expect_well_formed(to_svg({{.title = "empty", .axis = "", .series = {}, .groups = {}}}));
  expect_well_formed(to_svg({{.title = "zero", .axis = "", .series = {"a"}, .groups = {{"x", {0.0}}}}}));
}

}  // namespace
}  // namespace teratron::testing
