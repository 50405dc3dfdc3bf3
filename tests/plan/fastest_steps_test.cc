// Steps that are planned together are those of searches one by one.
#include "plan/fastest_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/random_request.h"
#include "plan/train_command.h"

namespace teratron::testing {
namespace {

using namespace plan;

TEST(FastestSteps, AreThoseOfSearchesOneByOne) {
  RandomSequence random({.seed = 77});
  std::vector<ComparedStep> steps;
  for (std::size_t model = 0; model < 4; ++model) {
    PlanRequest request = random_request(random);
    steps.push_back({.request = request, .model = model, .fastest = {}});
    request.cluster.device.memory_bandwidth /= 3;  // shares findings with the one before
    steps.push_back({.request = request, .model = model, .fastest = {}});
    request.cluster.device.memory = 1000;
    steps.push_back({.request = request, .model = model, .fastest = {}});
  }
  std::atomic<std::int64_t> planned{0};
  plan_steps(steps, planned);
  EXPECT_EQ(planned.load(), std::ssize(steps));
  for (const ComparedStep& step : steps) {
    const FastestStep& fastest = step.fastest;
    const SearchResult alone = search_layouts(step.request, 0);
    ASSERT_EQ(fastest.fits, !alone.best.empty());
    ASSERT_EQ(fastest.fits, step.request.cluster.device.memory > 1000);
    ASSERT_EQ(fastest.kinds.size(), names_of_memory_kinds().size());
    EXPECT_EQ(std::accumulate(fastest.kinds.begin(), fastest.kinds.end(), std::int64_t{0}), fastest.memory);
    if (!fastest.fits) {
      EXPECT_EQ(fastest.layout, alone.smallest->text());
      EXPECT_EQ(fastest.command, "");
      EXPECT_TRUE(fastest.columns.rows.empty());
      continue;
    }
    const PlannedLayout& best = alone.best.front();
    EXPECT_EQ(fastest.layout, best.layout.text());
    EXPECT_EQ(fastest.command, train_command(best.config, step.request.cluster));
    EXPECT_EQ(fastest.memory, std::ranges::max(best.memory));
    EXPECT_EQ(fastest.time.seconds, best.time.seconds);
    EXPECT_EQ(fastest.parts.seconds(), best.parts.seconds());
    EXPECT_EQ(fastest.columns.rows.size(), fastest.columns.stages.size());
  }
}

// Only a step without any layout has none.
TEST(FastestSteps, ReportTheClustersMistakes) {
  RandomSequence random({.seed = 78});
  std::vector<ComparedStep> steps = {{.request = random_request(random), .fastest = {}}};
  steps.front().request.cluster.constants.push_back({"fp8_products", 1, "test"});
  steps.front().request.cluster.device.peak_8 = 0;
  std::atomic<std::int64_t> planned{0};
  EXPECT_THROW(plan_steps(steps, planned), UserError);
}

}  // namespace
}  // namespace teratron::testing
