// Pages in Chromium, where it is installed (Debian's package chromium): widths, keys, and no request that leaves them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "html/page.h"
#include "html/plan_page.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Presses keys on the first chart, and writes down what the page is like.
constexpr std::string_view kProbe = R"html(<script>
const chart = document.querySelector("figure.chart"), said = [];
for (const key of ["Home", "ArrowRight", "End", "ArrowRight", "a"]) {
  chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  said.push(chart.querySelector("output").textContent);
}
const colour = getComputedStyle(document.body).backgroundColor;
const requests = performance.getEntriesByType("resource").length;
const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
const probe = document.createElement("pre");
probe.id = "probe";
probe.textContent = JSON.stringify({said, colour, requests, wide, width: innerWidth,
  mark: chart.querySelector(".pointer").getAttribute("x1")});
document.body.append(probe);
</script>)html";

class InABrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium > /dev/null 2>&1") != 0) GTEST_SKIP() << "chromium is not installed";
    HtmlPage page("Run");
    page.table("", {"setting", "a", "b"}, {{"data_path", std::string(300, 'x'), "/a/b"}});
    svg::Points falling, noisy;
    for (int i = 1; i <= 1000; ++i) {
      falling.emplace_back(i, 7 * std::exp(-i / 300.0));
      noisy.emplace_back(i, 3 + std::sin(i));
    }
    page.section("Curves");
    page.charts({{.title = "Few", .x_axis = "updates", .curves = {{.name = "a", .points = {{1, 4}, {2, 2.5}, {3, 2}}}}},
                 {.title = "Many",
                  .x_axis = "updates",
                  .curves = {{.name = "a", .points = falling}, {.name = "b", .color = 1, .points = noisy}}}});
    write_file_atomically(file(), page.finish() + std::string(kProbe));
  }

  std::filesystem::path file() const { return folder_.path() / "page.html"; }

  // JSON that the probe left in the page.
  std::string probed(int width, bool dark) const {
    const std::string out = (folder_.path() / "dom.html").string();
    const std::string command = fmt::format(
        "HOME='{0}' timeout 100 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir='{0}/profile' "
        "--blink-settings=preferredColorScheme={1} --window-size={2},900 --virtual-time-budget=2000 --dump-dom "
        "'file://{3}' > '{4}' "
        "2> /dev/null",
        folder_.path().string(), dark ? 0 : 1, width, file().string(), out);
    if (std::system(command.c_str()) != 0) return "chromium failed";
    const std::string dom = read_file(out);
    std::smatch match;
    return std::regex_search(dom, match, std::regex("id=\"probe\">([^<]*)<")) ? match[1].str() : dom;
  }

  const TemporaryFolder folder_;
};

TEST_F(InABrowser, KeysShowValuesAtEveryWidthAndNothingIsAskedFor) {
  for (const int width : {500, 820, 1440}) {  // Chromium's windows are at least 500 wide
    const std::string probe = probed(width, width == 820);
    EXPECT_THAT(probe, HasSubstr(R"("said":["1:  4","2:  2.5","3:  2","3:  2","3:  2"])"));
    EXPECT_THAT(probe, HasSubstr("\"requests\":0"));
    EXPECT_THAT(probe, HasSubstr("\"wide\":false")) << "at " << width;
    EXPECT_THAT(probe, HasSubstr(fmt::format("\"width\":{}", width)));
    EXPECT_THAT(probe, HasSubstr(width == 820 ? "rgb(13, 17, 23)" : "rgb(255, 255, 255)"));
  }
}

// Moves the sliders of a plan's page, and writes down what it says.
constexpr std::string_view kPlanProbe = R"html(<script>
const said = [], before = document.querySelector("#tokens-shown").textContent;
const set = (id, value) => {
  const input = document.querySelector("#" + id);
  input.value = value;
  input.dispatchEvent(new Event("input"));
  said.push(document.querySelector("#answer").textContent);
};
set("devices", 0);
set("devices", 1);
set("tokens", 9);
set("price", 3);
set("sequences", 1);
set("model", 1);
set("cluster", 1);
const text = id => document.querySelector("#" + id).textContent;
const parts = id => [...document.querySelectorAll(id + " .legend li")].map(item => item.textContent);
const blocks = [...document.querySelectorAll("#timeline svg")].map(svg =>
  [...svg.children].map(block => block.getAttribute("class") + block.getAttribute("x") + "+" + block.getAttribute("width")).join(" "));
const shown = {command: text("command"), memory: text("memory"), kinds: parts("#memory"),
  passes: parts("#timeline"), blocks, label: document.querySelector("#timeline [role=img]").ariaLabel, shown: text("devices-shown")};
set("cluster", 0);  // a timeline of 160 columns
const probe = document.createElement("pre");
probe.id = "probe";
probe.textContent = JSON.stringify({said, before, ...shown,
  wide: document.documentElement.scrollWidth > document.documentElement.clientWidth});
document.body.append(probe);
</script>)html";

TEST_F(InABrowser, APlansSlidersPickTheStepsAndMultiply) {
  const auto step = [](std::int64_t devices, std::int64_t sequences, double rate) {
    return PlannedStep{.devices = devices,
                       .sequences = sequences,
                       .fits = true,
                       .layout = fmt::format("dp {}", devices),
                       .command = fmt::format("train --dp {}", devices),
                       .memory = 3 << 29,
                       .kinds = {1 << 30, 0, 1 << 29},
                       .seconds = 2,
                       .tokens_per_second = rate,
                       .mfu = 0.5,
                       .compute = 2,
                       .timeline = {.windows = {{0, 2}}, .stages = {0}, .rows = {std::string(160, 'F')}}};
  };
  PlanPage plan{.model = "GPT-2", .cluster = "c", .tokens = 3e14};
  plan.kinds = {"weights", "gradients", "optimizer"};
  plan.clusters = {{"c", "D", std::int64_t{2} << 30, 1000}, {"d", "E", std::int64_t{3} << 30, 0}};
  plan.steps = {step(8, 64, 1e6), step(8, 128, 2e6), step(16, 64, 4e6), step(16, 128, 8e6)};
  plan.models = {"small", "large"};
  for (std::size_t i = 0; i < 4; ++i) {
    plan.steps.push_back(plan.steps[i]);
    plan.steps.back().model = 1;
    plan.steps.back().layout = "tp 8";
  }
  for (std::size_t i = 0; i < 8; ++i) {
    plan.steps.push_back(plan.steps[i]);
    plan.steps.back().cluster = 1;
    plan.steps.back().layout += " on E";
    plan.steps.back().timeline = {.windows = {{0, 0.5}, {1.5, 2}}, .stages = {0, 7}, .rows = {"FfB-BbSS", "-FBbB-SS"}};
  }
  plan.steps[0].fits = false;
  plan.first = 3;
  write_file_atomically(file(), plan_page(plan) + std::string(kPlanProbe));
  const std::string probe = probed(820, false);
  EXPECT_THAT(probe, HasSubstr("\"said\":[\"It fits: dp 8.")) << "sequences are those of the first step";
  EXPECT_THAT(probe, HasSubstr("\"It fits: dp 16.A step takes 2.000 s, 8.00 M tokens a second, MFU 50.0 %."));
  // 1e9 tokens at 8e6 a second are 125 s of 16 devices: 0.5556 hours, 1.667 dollars, 0.000556 MWh.
  EXPECT_THAT(probe, HasSubstr("1.00 G tokens take 0.00145 days, 0.556 device-hours, 1.67 dollars, 0.000556 MWh"));
  EXPECT_THAT(probe, HasSubstr("\"It fits: tp 8.A step takes"));
  EXPECT_THAT(probe, HasSubstr("\"It fits: tp 8 on E.A step takes"));
  EXPECT_THAT(probe, HasSubstr("\"command\":\"train --dp 16\""));
  EXPECT_THAT(probe, HasSubstr("\"before\":\"300 T\"")) << "neither rounded nor cut to the slider's usual limits";
  EXPECT_THAT(probe, HasSubstr("\"memory\":\"Memory of the fullest rank: 1.50 GiB of 3.00 GiB"));
  EXPECT_THAT(probe, HasSubstr(R"("kinds":["weights 1.00 GiB","optimizer 512 MiB"])"));
  EXPECT_THAT(probe, HasSubstr(R"("passes":["forward","backward","gradient sums and update"])"));
  EXPECT_THAT(probe, HasSubstr(R"("blocks":["F0+1 f1+1 B2+1","B0+1 b1+1 S2+2","F1+1 B2+1 b3+1","B0+1 S2+2"])"));
  EXPECT_THAT(probe, HasSubstr("\"label\":\"Timeline: stage 0 waits in 13 % of it, stage 7 waits in 25 % of it\""));
  EXPECT_THAT(probe, HasSubstr("\"shown\":\"16 x E\""));
  EXPECT_THAT(probe, HasSubstr("\"wide\":false"));
}

}  // namespace
}  // namespace teratron::testing
