// The search against brute force: every layout that fits, by predict_step() and the planned memory.
#include "plan/search/layout_search.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "plan/random_request.h"
#include "plan/search/layout_memory.h"
#include "plan/search/layout_time.h"

namespace teratron::testing {
namespace {

using namespace plan;

using Shape = std::array<std::int64_t, 3>;

// Every layout that search_layouts() chooses from, with the slicer's choices made.
std::vector<Layout> all_layouts(const PlanRequest& request) {
  LayoutTimes times(request.config, request.cluster, request.vocab_size);
  std::vector<Layout> all;
  for (const Layout& layout : layouts_of(request)) {
    if (layout.slicing.is_open()) {
      std::ranges::move(times.chosen(layout), std::back_inserter(all));
    } else {
      all.push_back(layout);
    }
  }
  return all;
}

// The least seconds of each (tp, pp, dp) that fits, all layouts simulated.
std::map<Shape, double> by_brute_force(const PlanRequest& request) {
  const LayoutMemory memory(request.config, request.context());
  std::map<Shape, double> best;
  for (const Layout& layout : all_layouts(request)) {
    const StepTime time = predict_step(with_layout(request.config, layout), request.cluster, request.vocab_size);
    const auto [found, is_new] =
        best.try_emplace(Shape{layout.tensor, layout.pipeline, layout.data}, std::numeric_limits<double>::infinity());
    if (time.seconds >= found->second) continue;
    const std::vector<std::int64_t> bytes = memory.planned(layout);
    if (static_cast<double>(std::ranges::max(bytes)) <= request.cluster.device.memory) found->second = time.seconds;
  }
  std::erase_if(best, [](const auto& one) { return !std::isfinite(one.second); });
  return best;
}

// So that some layouts fit and others do not.
void tighten_memory(PlanRequest& request, RandomSequence& random) {
  const LayoutMemory memory(request.config, request.context());
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const Layout& layout : layouts_on(request.cluster.devices, request.config, {})) {
    const std::int64_t bytes = memory.least(layout);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  if (most == 0) return;
  request.cluster.device.memory =
      static_cast<double>(least) + drawn_between(random, 0, 1) * static_cast<double>(most - least);
}

void fix_something(PlanRequest& request, RandomSequence& random) {
  switch (random.below(9)) {
    case 0: request.fixed.tensor = drawn(random, {1, 2}); break;
    case 1: request.fixed.pipeline = 2; break;
    case 2: request.fixed.recompute = Recompute::kFull; break;
    case 3: request.fixed.schedule = pipeline::ScheduleKind::kTeraPipe; break;
    case 4: request.fixed.distributed_optimizer = true; break;
    case 5: request.fixed.slicing = {.open = Slicing::Open::kJoint}; break;
    case 6: request.fixed.schedule = pipeline::ScheduleKind::kSeq1F1BInterleaved; break;
    case 7: request.fixed.schedule = pipeline::ScheduleKind::kVHalf; break;
    default: break;
  }
}

bool has_layouts(const PlanRequest& request) {
  for (std::int64_t devices = request.cluster.devices; devices >= 1; --devices) {
    if (!layouts_on(devices, request.config, request.fixed).empty()) return true;
  }
  return false;
}

TEST(LayoutSearch, FindsTheOptimumOfEveryShape) {
  RandomSequence random({.seed = 31});
  int fitting = 0, nothing = 0;
  std::int64_t layouts = 0, simulated = 0;
  for (int trial = 0; trial < 24; ++trial) {
    PlanRequest request = random_request(random);
    tighten_memory(request, random);
    fix_something(request, random);
    if (!has_layouts(request)) continue;
    SCOPED_TRACE(fmt::format("trial {}: {} devices, {:.0f} bytes\n{}", trial, request.cluster.devices,
                             request.cluster.device.memory, to_toml(request.config)));
    std::map<Shape, double> best = by_brute_force(request);
    const SearchResult found = search_layouts(request, 2);
    layouts += found.layouts;
    simulated += found.simulated;
    ASSERT_EQ(found.best.size(), std::min<std::size_t>(best.size(), 3));
    (best.empty() ? nothing : fitting) += 1;
    std::vector<double> seconds;
    for (const auto& [shape, least] : best) seconds.push_back(least);
    std::ranges::sort(seconds);
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      EXPECT_DOUBLE_EQ(found.best[i].time.seconds, seconds[i]) << found.best[i].layout.text();
    }
  }
  EXPECT_GT(fitting, 10);
  EXPECT_GT(nothing, 0);
  EXPECT_LT(simulated, layouts / 2);  // else the bounds are of no use
}

TEST(LayoutSearch, NoLayoutIsFasterThanItsBound) {
  RandomSequence random({.seed = 32});
  double shares = 0;
  int looked_at = 0;
  for (int trial = 0; trial < 150; ++trial) {
    PlanRequest request = random_request(random);
    if (trial % 4 == 0) request.fixed.slicing = {.open = Slicing::Open::kJoint};
    if (trial % 5 == 0) request.config.optimizer.kind = OptimizerKind::kMuon;
    if (trial % 6 == 0) request.config.model.config.adapters.rank = 4;
    std::vector<Layout> layouts = layouts_on(request.cluster.devices, request.config, request.fixed);
    if (layouts.empty()) continue;
    LayoutTimes times(request.config, request.cluster, request.vocab_size);
    Layout layout = layouts[random.below(layouts.size())];
    const double before = times.least(layout);
    if (layout.slicing.is_open()) {
      const std::vector<Layout> chosen = times.chosen(layout);
      if (chosen.empty())
        layout.slicing = {};
      else
        layout = chosen[random.below(chosen.size())];
    }
    const double bound = times.least(layout);
    const double seconds =
        predict_step(with_layout(request.config, layout), request.cluster, request.vocab_size).seconds;
    EXPECT_LE(before, bound * (1 + 1e-12)) << layout.text();  // of any slices
    EXPECT_LE(bound, seconds * (1 + 1e-12)) << layout.text() << "\n" << to_toml(request.config);
    shares += bound / seconds;
    ++looked_at;
  }
  EXPECT_GT(looked_at, 100);
  EXPECT_GT(shares / looked_at, 0.5);
}

TEST(LayoutSearch, JointSlicesAreNeverSlowerThanThoseOfMicroBatchesAlike) {
  RandomSequence random({.seed = 34});
  int compared = 0, faster = 0;
  for (int trial = 0; trial < 40; ++trial) {
    PlanRequest request = random_request(random);
    request.config.batch.global_batch_size = drawn(random, {3, 5, 6, 7});
    request.fixed = {.schedule = pipeline::ScheduleKind::kTeraPipe, .sequence_parallel = false};
    if (!has_layouts(request)) continue;
    const SearchResult alike = search_layouts(request, 0);
    request.fixed.slicing = {.open = Slicing::Open::kJoint};
    if (!has_layouts(request)) continue;
    const SearchResult joint = search_layouts(request, 0);
    const double ratio = joint.best.front().time.seconds / alike.best.front().time.seconds;
    EXPECT_LE(ratio, 1 + 1e-12) << joint.best.front().layout.text() << "\n" << alike.best.front().layout.text();
    ++compared;
    if (joint.best.front().layout.slicing.text.find('x') != std::string::npos && ratio < 1) ++faster;
  }
  EXPECT_GT(compared, 20);
  EXPECT_GT(faster, 0);
}

TEST(LayoutSearch, NamesTheLayoutThatNeedsLeastWhereNoneFitsAndCutsAreJoint) {
  RandomSequence random({.seed = 35});
  int looked_at = 0;
  for (int trial = 0; trial < 12; ++trial) {
    PlanRequest request = random_request(random);
    request.cluster.device.memory = 1;
    request.fixed.slicing = {.open = Slicing::Open::kJoint};
    if (!has_layouts(request)) continue;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const LayoutMemory memory(request.config, request.context());
    for (const Layout& layout : all_layouts(request)) least = std::min(least, memory.fullest_end(layout));
    const SearchResult found = search_layouts(request, 0);
    EXPECT_TRUE(found.best.empty());
    ASSERT_TRUE(found.smallest);
    EXPECT_EQ(memory.fullest_end(*found.smallest), found.smallest_bytes);
    EXPECT_EQ(found.smallest_bytes, least) << found.smallest->text();
    ++looked_at;
  }
  EXPECT_GT(looked_at, 4);
}

TEST(LayoutSearch, KeepsFixedValues) {
  RandomSequence random({.seed = 33});
  for (int trial = 0; trial < 12; ++trial) {
    PlanRequest request = random_request(random);
    fix_something(request, random);
    if (!has_layouts(request)) continue;
    for (const PlannedLayout& one : search_layouts(request, 3).best) {
      FixedLayout fixed = request.fixed;
      if (fixed.slicing && fixed.slicing->is_open()) fixed.slicing = one.layout.slicing;  // as they were chosen
      EXPECT_TRUE(fixed.allows(one.layout)) << one.layout.text();
      EXPECT_TRUE(one.config.faults().empty()) << one.layout.text();
      EXPECT_EQ(layout_of(one.config), one.layout);
      EXPECT_NEAR(one.parts.seconds(), one.time.seconds, 1e-9 * one.time.seconds);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
