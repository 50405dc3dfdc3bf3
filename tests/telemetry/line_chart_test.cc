#include "telemetry/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <stack>

namespace teratron {
namespace {

// Every element that is opened is closed, in order.
void expect_well_formed(const std::string& svg) {
  std::stack<std::string> open;
  const std::regex tag("<(/?)([a-z]+)[^<>]*?(/?)>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if ((*it)[1] == "/") {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.top(), name);
      open.pop();
    } else if ((*it)[3] != "/") {
      open.push(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(LineChart, HigherValuesStandHigherAndEveryPointIsDrawn) {
  const std::string svg = svg_of({{.title = "a < b & c",
                                   .x_label = "ranks",
                                   .y_label = "%",
                                   .lines = {{.name = "here", .x = {1, 2, 4}, .y = {100, 50, 75}},
                                             {.name = "paper", .x = {1, 2, 4}, .y = {100, 95, 82}, .dashed = true}}}});
  expect_well_formed(svg);
  EXPECT_THAT(svg, ::testing::HasSubstr("a &lt; b &amp; c"));
  std::vector<double> heights;
  const std::regex circle("<circle cx=\"[0-9.]+\" cy=\"([0-9.]+)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), circle), end; it != end; ++it)
    heights.push_back(std::stod((*it)[1]));
  ASSERT_EQ(heights.size(), 6U);
  EXPECT_LT(heights[0], heights[2]);  // SVG counts from the top
  EXPECT_LT(heights[2], heights[1]);
  EXPECT_EQ(heights[0], heights[3]);
}

TEST(LineChart, NothingToDrawIsAPictureToo) {
  expect_well_formed(svg_of({}));
  expect_well_formed(svg_of({{.title = "empty"}}));
  expect_well_formed(svg_of({{.lines = {{.name = "zero", .x = {0}, .y = {0}}}}}));
}

}  // namespace
}  // namespace teratron
