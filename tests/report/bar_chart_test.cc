#include "report/bar_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <stack>

namespace teratron::svg {
namespace {

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

TEST(BarChart, NothingToDrawIsAPictureToo) {
  expect_well_formed(to_svg({}));
  expect_well_formed(to_svg({{.title = "empty", .axis = "", .series = {}, .groups = {}}}));
  expect_well_formed(to_svg({{.title = "zero", .axis = "", .series = {"a"}, .groups = {{"x", {0.0}}}}}));
}

}  // namespace
}  // namespace teratron::svg
