// Recomputation chosen by stage against brute force: every list of ways, by planned memory and simulated time.
#include "plan/search/recompute_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "plan/random_request.h"
#include "plan/search/layout_memory.h"
#include "plan/search/layout_time.h"
#include "plan/search/pipeline_choice.h"

namespace teratron::testing {
namespace {

using namespace plan;

// Ways of a stage with cells of so many layers: none, and each kind in 1, 2, .. of them, in all slices or in the first
// ones.
std::vector<StageRecompute> all_ways(std::int64_t layers, std::int64_t slices) {
  std::vector<StageRecompute> ways = {{}};
  for (const Recompute kind : {Recompute::kSelective, Recompute::kFull}) {
    for (std::int64_t count = 0; count < layers; ++count) {
      for (std::int64_t first = 0; first < slices; ++first) {
        ways.push_back({.kind = kind, .layers = count, .slices = first});
      }
    }
  }
  return ways;
}

// A pipeline on two or three devices, whose activations take much of the memory.
PlanRequest some_pipeline(RandomSequence& random, std::int64_t stages, const std::string& slices) {
  PlanRequest request{.cluster = {.name = "some", .devices = stages}, .vocab_size = drawn(random, {50, 2000})};
  request.cluster.device = {"device", 1e12, drawn_between(random, 1e11, 1e12), drawn_between(random, 1e10, 1e11),
                            drawn_between(random, 1e10, 1e11)};
  request.cluster.links = {{.name = "link", .devices = stages, .bandwidth = 1e10, .latency = 1e-6}};
  TrainConfig& config = request.config;
  config.data_path = {"corpus"};
  config.train_iters = 1;
  config.model.config.num_layers = stages * drawn(random, {1, 2, 3});
  config.model.config.num_attention_heads = 4;
  config.model.config.hidden_size = drawn(random, {32, 64});
  config.model.config.vocab_size = request.vocab_size;
  config.model.seq_length = 256;
  config.layout.pipeline_parallel = stages;
  config.pipeline.schedule = slices.empty() ? pipeline::ScheduleKind::k1F1B : pipeline::ScheduleKind::kSeq1F1B;
  config.pipeline.token_slices = slices;
  config.batch.micro_batch_size = drawn(random, {1, 2});
  config.batch.global_batch_size = config.batch.micro_batch_size * drawn(random, {2, 4});
  return request;
}

struct Best {
  double seconds = std::numeric_limits<double>::infinity();
  Recomputation recompute;
};

// The fastest of all lists that fit.
Best best_of_all(const PlanRequest& request, const Layout& layout, std::int64_t slices, std::int64_t room) {
  LayoutTimes times(request.config, request.cluster, request.vocab_size);
  const LayoutMemory memory(request.config, request.context());
  const auto stages = static_cast<std::size_t>(layout.pipeline);
  const std::vector<StageRecompute> ways = all_ways(request.config.model.config.num_layers / layout.pipeline, slices);
  // A stage's memory does not depend on the others; a list of one kind for all says it of each.
  std::vector<std::vector<bool>> fits(stages);
  for (const StageRecompute& way : ways) {
    Layout alike = layout;
    alike.recompute = Recomputation(std::vector{way});
    const std::vector<std::int64_t> bytes = memory.planned(alike);
    for (std::size_t stage = 0; stage < stages; ++stage) fits[stage].push_back(bytes[stage] <= room);
  }
  std::vector<std::size_t> list(stages, 0);
  Best best;
  while (true) {
    bool fit = true;
    std::vector<StageRecompute> of_stages;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      fit = fit && fits[stage][list[stage]];
      of_stages.push_back(ways[list[stage]]);
    }
    if (fit) {
      Layout one = layout;
      one.recompute = Recomputation(of_stages);
      const double seconds = times.step(one).seconds;
      EXPECT_LE(times.least(one), seconds * (1 + 1e-12)) << one.text();
      if (seconds < best.seconds) best = {seconds, one.recompute};
    }
    std::size_t stage = 0;
    while (stage < stages && ++list[stage] == ways.size()) list[stage++] = 0;
    if (stage == stages) return best;
  }
}

// Between what the fullest stage takes with everything made again and with nothing.
std::int64_t some_room(const PlanRequest& request, Layout layout, double share) {
  const LayoutMemory memory(request.config, request.context());
  const auto fullest = [&](Recompute kind) {
    layout.recompute = kind;
    return static_cast<double>(std::ranges::max(memory.planned(layout)));
  };
  const double most = fullest(Recompute::kNone), least = fullest(Recompute::kFull);
  return static_cast<std::int64_t>(least + share * (most - least));
}

TEST(RecomputeChoice, IsTheBestOfAllLists) {
  RandomSequence random({.seed = 81});
  int differing = 0, partial = 0;
  for (int trial = 0; trial < 10; ++trial) {
    const PlanRequest request = some_pipeline(random, drawn(random, {2, 2, 3}), "");
    const Layout layout = layout_of(request.config);
    const std::int64_t room = some_room(request, layout, random.uniform());
    SCOPED_TRACE(fmt::format("trial {}: {} bytes\n{}", trial, room, to_toml(request.config)));
    const Best best = best_of_all(request, layout, 1, room);
    LayoutTimes times(request.config, request.cluster, request.vocab_size);
    const ChosenRecomputation chosen =
        choose_recomputation(request.config, request.context(), layout, {.room = room}, times);
    Layout one = layout;
    one.recompute = chosen.recompute;
    EXPECT_EQ(chosen.bytes, std::ranges::max(LayoutMemory(request.config, request.context()).planned(one)));
    if (!std::isfinite(best.seconds)) {
      EXPECT_GT(chosen.bytes, room);
      continue;
    }
    EXPECT_LE(chosen.bytes, room);
    EXPECT_DOUBLE_EQ(times.step(one).seconds, best.seconds)
        << chosen.recompute.text() << " for " << best.recompute.text();
    differing += chosen.recompute.differs() ? 1 : 0;
    partial += chosen.recompute.text().find(':') != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(differing, 2);
  EXPECT_GT(partial, 1);
}

// Where slices cost alike in sum, they need not in a pipeline, so that the sum is not all that counts.
TEST(RecomputeChoice, IsWithinTwoPercentOfAllListsOfSlices) {
  RandomSequence random({.seed = 82});
  int by_slices = 0;
  for (int trial = 0; trial < 6; ++trial) {
    const PlanRequest request = some_pipeline(random, 2, "uniform:3");
    const Layout layout = layout_of(request.config);
    const std::int64_t room = some_room(request, layout, random.uniform());
    SCOPED_TRACE(fmt::format("trial {}: {} bytes\n{}", trial, room, to_toml(request.config)));
    const Best best = best_of_all(request, layout, 3, room);
    if (!std::isfinite(best.seconds)) continue;
    LayoutTimes times(request.config, request.cluster, request.vocab_size);
    const ChosenRecomputation chosen =
        choose_recomputation(request.config, request.context(), layout, {.room = room}, times);
    Layout one = layout;
    one.recompute = chosen.recompute;
    EXPECT_LE(chosen.bytes, room);
    EXPECT_LE(times.step(one).seconds, 1.02 * best.seconds)
        << chosen.recompute.text() << " for " << best.recompute.text();
    by_slices += chosen.recompute.text().find('@') != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(by_slices, 0);
}

// A search over pipelines, before, made all stages alike.
TEST(RecomputeChoice, OfASearchIsNoSlowerThanOneKindForAllStages) {
  RandomSequence random({.seed = 83});
  int faster = 0;
  for (int trial = 0; trial < 6; ++trial) {
    PlanRequest request = some_pipeline(random, 2, "");
    const Layout layout = layout_of(request.config);
    request.cluster.device.memory = static_cast<double>(some_room(request, layout, random.uniform()));
    const GivenPipeline given{.virtual_stages = true,
                              .layout = true,
                              .token_slices = true,
                              .defer_weight_gradients = true,
                              .vocabulary_parallel = true};
    PlanRequest free = pipeline_request(request.config, given, request.cluster, request.vocab_size);
    free.fixed.recompute.reset();
    const SearchResult chosen = search_layouts(free, 0);
    double alike = std::numeric_limits<double>::infinity();
    for (const Recompute kind : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      free.fixed.recompute = kind;
      const SearchResult one = search_layouts(free, 0);
      if (!one.best.empty()) alike = std::min(alike, one.best.front().time.seconds);
    }
    if (chosen.best.empty()) {
      EXPECT_FALSE(std::isfinite(alike));
      continue;
    }
    const PlannedLayout& best = chosen.best.front();
    EXPECT_LE(best.time.seconds, alike * (1 + 1e-12)) << best.layout.text();
    EXPECT_LE(static_cast<double>(std::ranges::max(best.memory)), request.cluster.device.memory);
    EXPECT_TRUE(best.config.faults().empty());
    EXPECT_EQ(layout_of(best.config).recompute, best.layout.recompute);
    EXPECT_NEAR(best.parts.seconds(), best.time.seconds, 1e-9 * best.time.seconds);
    faster += best.time.seconds < 0.999 * alike ? 1 : 0;
  }
  EXPECT_GT(faster, 0);
}

}  // namespace
}  // namespace teratron::testing
