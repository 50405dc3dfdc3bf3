#include "report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace teratron::testing {
namespace {

using namespace svg;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> axis(double largest) { return tick_labels(ticks(largest, 5)); }

TEST(Svg, TicksAreRoundAndReadWithoutExponents) {
  EXPECT_THAT(axis(5500), ElementsAre("0", "2000", "4000", "6000"));
  EXPECT_THAT(axis(1.7), ElementsAre("0", "0.5", "1.0", "1.5", "2.0"));
  EXPECT_THAT(axis(0.3), ElementsAre("0", "0.1", "0.2", "0.3"));
  EXPECT_THAT(axis(1e6), ElementsAre("0", "0.2M", "0.4M", "0.6M", "0.8M", "1.0M"));
  EXPECT_THAT(axis(230000), ElementsAre("0", "50k", "100k", "150k", "200k", "250k"));
  EXPECT_THAT(axis(0), ElementsAre("0", "0.2"));
}

TEST(Svg, TicksOfAnySizeReachTheLargestValueAndDiffer) {
  for (double largest = 1e-6; largest < 1e15; largest *= 1.37) {
    const std::vector<double> values = ticks(largest, 5);
    ASSERT_LE(values.size(), 6U) << largest;
    EXPECT_GE(values.back(), largest * (1 - 1e-6));
    EXPECT_LE(values[values.size() - 2], largest);
    const std::vector<std::string> labels = tick_labels(values);
    EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), values.size()) << largest;
    for (const std::string& label : labels) EXPECT_EQ(label.find('e'), std::string::npos) << label;
  }
}

TEST(Svg, LabelsGiveTheirValuesExactly) {
  EXPECT_THAT(tick_labels(std::vector<double>{1, 2, 64}), ElementsAre("1", "2", "64"));
  EXPECT_THAT(tick_labels(std::vector<double>{512, 131072}), ElementsAre("0.512k", "131.072k"));
  EXPECT_THAT(tick_labels(std::vector<double>{5000002, 5000004}), ElementsAre("5.000002M", "5.000004M"));
}

TEST(Svg, TextIsEscaped) {
  Drawing drawing(100, 50);
  drawing.text(1, 2, Anchor::kEnd, 12, "a < b & c > d");
  const std::string svg = std::move(drawing).finish();
  EXPECT_THAT(svg, HasSubstr(">a &lt; b &amp; c &gt; d</text>"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace teratron::testing
