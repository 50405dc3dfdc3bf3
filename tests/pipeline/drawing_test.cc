#include "pipeline/drawing/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/message_of.h"
#include "pipeline/generators.h"
#include "pipeline/random_schedule.h"
#include "pipeline/token_slices.h"
#include "report/svg.h"

namespace teratron::testing {
namespace {

using namespace pipeline;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Drawing, TextShowsStagesDownAndTimeAcross) {
  const Schedule schedule = make_schedule(ScheduleKind::k1F1B, {.stages = 2, .micro_batches = 3});
  const std::string text = to_text(schedule, simulate(schedule, even_costs(schedule, 1, 2)), 20);
  EXPECT_THAT(text, StartsWith("stage 0 01..aa2bb.cc\n"
                               "stage 1 .0aa1bb2cc..\n"));
}

TEST(Drawing, TextMarksWeightGradientsAndIsLeftOutWhereItDoesNotFit) {
  Schedule schedule = make_schedule(ScheduleKind::kGpipe, {});
  schedule.actions = {{{.pass = Pass::kForward}, {.pass = Pass::kBackwardInput}, {.pass = Pass::kBackwardWeight}}};
  const Simulation simulation = simulate(schedule, even_costs(schedule, 1, 2));
  EXPECT_THAT(to_text(schedule, simulation, 12), StartsWith("stage 0 0a+\n"));
  EXPECT_EQ(to_text(schedule, simulation, 10), "");
}

TEST(Drawing, TextOfAnyScheduleIsALineAStageNoWiderThanTheTerminal) {
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 100; ++trial) {
    const Schedule schedule = any_schedule(random);
    const int columns = between(random, 10, 200);
    std::istringstream lines(to_text(schedule, simulate(schedule, even_costs(schedule, 1, 2)), columns));
    int stages = 0;
    for (std::string line; std::getline(lines, line) && line.starts_with("stage"); ++stages) {
      ASSERT_LE(line.size(), static_cast<std::size_t>(columns));
    }
    ASSERT_TRUE(stages == 0 || stages == schedule.stages);
  }
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Drawing, SvgHasABlockForEveryActionInItsPassesColor) {
  RandomSequence random(RandomStream{.seed = 2});
  const Schedule schedule = random_schedule(random, {.stages = 3, .micro_batches = 3, .slices = 2});
  const Simulation simulation = simulate(schedule, even_costs(schedule, 1, 2));
  const std::string svg = to_svg({{schedule, simulation, "a < b & c"}, {schedule, simulation, "again"}});
  std::size_t actions = 0;
  for (const auto& list : schedule.actions) actions += list.size();
  std::size_t legend = 0;
  for (const char* name : {">forward<", ">backward<", ">input gradient<", ">weight gradient<", ">waiting<"}) {
    EXPECT_LE(count(svg, name), 1U) << name;
    legend += count(svg, name);
  }
  EXPECT_EQ(count(svg, ">forward<") + count(svg, ">waiting<"), 2U);
  EXPECT_EQ(count(svg, "<rect"), 1 + 2 * (actions + 3) + legend);
  EXPECT_EQ(count(svg, "#8db9e8"), 2U * 18U + 1);
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, StartsWith("<svg"));
}

TEST(Drawing, TheLegendHasThePassesThatOccur) {
  const Schedule schedule = make_schedule(ScheduleKind::kGpipe, {.stages = 2, .micro_batches = 2});
  const std::string svg = to_svg({{schedule, simulate(schedule, even_costs(schedule, 1, 2)), ""}});
  EXPECT_EQ(count(svg, ">forward<") + count(svg, ">backward<") + count(svg, ">waiting<"), 3U);
  EXPECT_EQ(count(svg, "gradient"), 0U);
}

TEST(Drawing, OnALongerSpanASvgsBlocksAreShorter) {
  const Schedule schedule = make_schedule(ScheduleKind::kGpipe, {});
  const Simulation simulation = simulate(schedule, even_costs(schedule, 1, 1));
  const auto whole_width = [&](double span) {  // of the grey block behind a stage
    const std::string svg = to_svg({{schedule, simulation, ""}}, span);
    const std::string before = svg.substr(0, svg.find("fill=\"#e4e4e4\" stroke"));
    return std::stod(before.substr(before.rfind("width=\"") + 7));
  };
  EXPECT_GT(whole_width(0), 0);
  EXPECT_EQ(whole_width(1), whole_width(0));
  EXPECT_NEAR(whole_width(4), whole_width(0) / 2, 0.01);
}

TEST(Drawing, NumbersOfTheTimeAxisAreReadableAndApart) {
  const Schedule schedule = make_schedule(ScheduleKind::kGpipe, {.stages = 3, .micro_batches = 2});
  for (double forward = 1e-3; forward < 1e6; forward *= 3.7) {
    const Simulation simulation = simulate(schedule, even_costs(schedule, forward, 2 * forward));
    for (const double span : {0.0, 5 * simulation.iteration, 100 * simulation.iteration}) {
      const std::string svg = to_svg({{schedule, simulation, ""}}, span);
      const std::regex text("<text x=\"([0-9.]+)\" [^>]*text-anchor=\"(middle|end)\" font-size=\"11\">([^<]*)<");
      double right = 0;  // of the numbers
      double left = 0;   // of what stands at the end: it comes before the numbers in the file
      for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) {
        const double x = std::stod((*it)[1]), width = svg::text_width((*it)[3].str(), 11);
        EXPECT_EQ((*it)[3].str().find("e+"), std::string::npos);
        if ((*it)[2] == "end") {
          left = x - width;
          continue;
        }
        EXPECT_GT(x - width / 2, right) << forward << " " << span;
        right = x + width / 2;
      }
      EXPECT_GT(right, 0);
      EXPECT_LT(right, left) << forward << " " << span;
    }
  }
}

TEST(TokenSlices, AreANumberOrLengthsOrAuto) {
  EXPECT_TRUE(parse_token_slices("--slices", "auto").automatic);
  EXPECT_EQ(parse_token_slices("--slices", "uniform:8").count, 8);
  EXPECT_THAT(parse_token_slices("--slices", "uniform:8").lengths, IsEmpty());
  EXPECT_EQ(parse_token_slices("--slices", "8").count, 8);
  EXPECT_THAT(parse_token_slices("--slices", "704,688,656").lengths, ElementsAre(704, 688, 656));
  for (const char* wrong : {"", "0", "-1", "a", "4,", ",4", "4,,4", "1e3", "4 4", "99999999999999999999", "4,0",
                            "uniform", "uniform:", "uniform:0", "uniform:4,4", "Auto", "auto,4"}) {
    EXPECT_THROW(parse_token_slices("--slices", wrong), UserError) << wrong;
  }
  const TokenSlices joint = parse_token_slices("--slices", "2x512,400,112+2x1024+1x1000,24");
  EXPECT_EQ(joint.count, 3);
  EXPECT_THAT(joint.cuts,
              ElementsAre(MicroBatchCut{2, {512, 400, 112}}, MicroBatchCut{2, {1024}}, MicroBatchCut{1, {1000, 24}}));
  EXPECT_THAT(joint.slices_each(), ElementsAre(3, 1, 2));
  EXPECT_EQ(text_of(joint.cuts), "2x512,400,112+2x1024+1x1000,24");
  for (const char* wrong :
       {"2x", "x4", "2x4+", "+2x4", "2x4,+1x4", "2x4+1", "2*4", "0x4", "2x0", "2x4 +1x4", "1x4+2x4"}) {
    EXPECT_THROW(parse_token_slices("--slices", wrong), UserError) << wrong;
  }
  const auto offer = [](SliceForms forms) {
    return message_of<UserError>([=] { parse_token_slices("--slices", "16777217", forms); });
  };
  EXPECT_THAT(offer(SliceForms::kAll), AllOf(HasSubstr("documents:4"), HasSubstr("joint"), HasSubstr("16777216")));
  EXPECT_THAT(offer(SliceForms::kFixed), Not(AnyOf(HasSubstr("documents"), HasSubstr("joint"))));
  EXPECT_THAT(even_slices(10, 3), ElementsAre(4, 3, 3));
  EXPECT_THROW(even_slices(2, 3), UserError);
}

}  // namespace
}  // namespace teratron::testing
