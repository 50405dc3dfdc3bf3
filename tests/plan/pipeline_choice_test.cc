// The chosen pipeline against brute force: all schedules that the generators make, with every cut of a coarse grid.
#include "plan/search/pipeline_choice.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "plan/random_request.h"
#include "plan/search/layout_memory.h"

namespace teratron::testing {
namespace {

using namespace plan;

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kSteps = 8, kMostSlicesTried = 4;

// Every way to cut a sequence into up to four slices at eighths of it; the first is whole.
std::vector<std::string> all_cuts(std::int64_t tokens) {
  std::vector<std::string> cuts = {""};
  for (unsigned boundaries = 1; boundaries < 1U << (kSteps - 1); ++boundaries) {
    std::vector<std::int64_t> lengths = {tokens / kSteps};
    for (unsigned step = 0; step + 1 < kSteps; ++step) {
      if (boundaries >> step & 1U) lengths.push_back(0);
      lengths.back() += tokens / kSteps;
    }
    if (std::ssize(lengths) <= kMostSlicesTried) cuts.push_back(fmt::format("{}", fmt::join(lengths, ",")));
  }
  return cuts;
}

// Every pipeline of the request's mesh that has no faults.
std::vector<Layout> all_pipelines(const PlanRequest& request) {
  const std::vector<std::string> cuts = all_cuts(request.config.model.seq_length);
  std::vector<Layout> all;
  for (const pipeline::ScheduleKind kind : pipeline::kScheduleKinds) {
    for (std::int64_t cells = 1; cells <= request.config.model.config.num_layers / *request.fixed.pipeline; ++cells) {
      if (request.config.model.config.num_layers % (cells * *request.fixed.pipeline) != 0) continue;
      for (const std::string& cut : cuts) {
        for (const bool deferred : {false, true}) {
          Layout layout = layout_of(request.config);
          layout.schedule = kind;
          layout.virtual_stages = cells;
          layout.slicing = {cut};
          layout.defer_weight_gradients = deferred;
          layout.recompute = *request.fixed.recompute;
          if (with_layout(request.config, layout).StepSettings::faults().empty()) all.push_back(layout);
        }
      }
    }
  }
  return all;
}

double seconds_of(const PlanRequest& request, const Layout& layout) {
  return predict_step(with_layout(request.config, layout), request.cluster, request.vocab_size).seconds;
}

bool fits(const PlanRequest& request, const Layout& layout) {
  const LayoutMemory memory(request.config, request.context());
  return static_cast<double>(std::ranges::max(memory.planned(layout))) <= request.cluster.device.memory;
}

// A pipeline of two or three stages with up to four micro-batches, in which slices and bubbles both cost something.
PlanRequest small_pipeline(RandomSequence& random) {
  PlanRequest drawn_request = random_request(random);
  TrainConfig config = drawn_request.config;
  const std::int64_t stages = drawn(random, {2, 3});
  config.model.config.num_layers = stages * drawn(random, {1, 2, 4});
  config.model.seq_length = drawn(random, {128, 1024});
  config.layout.pipeline_parallel = stages;
  config.batch.micro_batch_size = 1;
  config.batch.global_batch_size = drawn(random, {1, 2, 3, 4});
  Cluster cluster = drawn_request.cluster;
  cluster.devices = stages;
  for (double* speed : {&cluster.device.peak_16, &cluster.device.peak_32, &cluster.device.memory_bandwidth}) {
    *speed /= 100;  // so that short slices take hardly longer
  }
  cluster.links = {{.name = "link",
                    .devices = stages,
                    .bandwidth = drawn_between(random, 1e9, 1e11),
                    .latency = drawn_between(random, 1e-6, 1e-5)}};
  // Equal layers; those that are dealt have a test of their own.
  return pipeline_request(config, {.is_auto = true, .layout = true, .vocabulary_parallel = true, .recompute = true},
                          cluster, drawn_request.vocab_size);
}

TEST(PipelineChoice, IsWithinOnePercentOfAllSchedules) {
  RandomSequence random({.seed = 61});
  int in_slices = 0, deferred = 0, in_cells = 0, tight = 0;
  for (int trial = 0; trial < 12; ++trial) {
    PlanRequest request = small_pipeline(random);
    std::vector<std::pair<double, Layout>> all;
    for (const Layout& layout : all_pipelines(request)) all.emplace_back(seconds_of(request, layout), layout);
    std::ranges::stable_sort(all, {}, &std::pair<double, Layout>::first);
    if (trial % 2 == 1) {  // the fastest does not fit
      const LayoutMemory memory(request.config, request.context());
      request.cluster.device.memory = static_cast<double>(std::ranges::max(memory.planned(all.front().second))) - 1;
    }
    const auto best = std::ranges::find_if(all, [&](const auto& one) { return fits(request, one.second); });
    if (best == all.end()) continue;
    SCOPED_TRACE(fmt::format("trial {}: {}\n{}", trial, best->second.text(), to_toml(request.config)));
    const SearchResult chosen = choose_pipeline(request);
    const Layout& layout = chosen.best.front().layout;
    EXPECT_LE(chosen.best.front().time.seconds, 1.01 * best->first) << layout.text();
    EXPECT_DOUBLE_EQ(chosen.best.front().time.seconds, seconds_of(request, layout));
    EXPECT_TRUE(fits(request, layout)) << layout.text();
    in_slices += layout.slicing.is_whole() ? 0 : 1;
    in_cells += layout.virtual_stages > 1 ? 1 : 0;
    deferred += layout.defer_weight_gradients ? 1 : 0;
    tight += trial % 2;
  }
  EXPECT_GT(in_slices, 1);
  EXPECT_GT(in_cells, 1);
  EXPECT_GT(deferred, 1);
  EXPECT_GT(tight, 2);
}

TEST(PipelineChoice, KeepsWhatIsGivenAndSaysWhatElseThereIs) {
  RandomSequence random({.seed = 62});
  PlanRequest request = small_pipeline(random);
  TrainConfig config = request.config;
  config.model.config.num_layers = 4 * config.layout.pipeline_parallel;
  config.pipeline.virtual_stages = 2;
  const GivenPipeline given{.is_auto = true, .virtual_stages = true, .defer_weight_gradients = true, .recompute = true};
  const SearchResult chosen = choose_pipeline(pipeline_request(config, given, request.cluster, request.vocab_size));
  for (const PlannedLayout& one : chosen.best) {
    EXPECT_EQ(one.layout.virtual_stages, 2);
    EXPECT_FALSE(one.layout.defer_weight_gradients);
    EXPECT_TRUE(one.config.faults().empty());
  }
  ASSERT_GT(chosen.best.size(), 1U);
  EXPECT_THAT(text_of_choice(chosen), HasSubstr(chosen.best.front().layout.pipeline_text()));
  EXPECT_THAT(text_of_choice(chosen), HasSubstr("instead: " + chosen.best[1].layout.pipeline_text()));
}

// One micro-batch has one order of its slices, whatever the schedule is called.
TEST(PipelineChoice, NamesNoPipelineTwice) {
  RandomSequence random({.seed = 63});
  for (int trial = 0; trial < 4; ++trial) {
    PlanRequest request = small_pipeline(random);
    request.config.batch.global_batch_size = 1;
    request.fixed.virtual_stages = 1;
    request.fixed.defer_weight_gradients = false;
    const SearchResult chosen = choose_pipeline(request, /*runners_up=*/10);
    std::set<std::pair<double, std::int64_t>> different;
    for (const PlannedLayout& one : chosen.best) {
      const bool is_new = different.emplace(one.time.seconds, std::ranges::max(one.memory)).second;
      EXPECT_TRUE(is_new) << one.layout.pipeline_text();
    }
  }
}

TEST(PipelineChoice, GivesEachMeshOfAPlanThePipelineThatItWouldGetAlone) {
  RandomSequence random({.seed = 66});
  int faster = 0;
  for (int trial = 0; trial < 8; ++trial) {
    PlanRequest request = small_pipeline(random);
    request.cluster.devices *= 2;
    request.cluster.links.front().devices *= 2;
    request.fixed = {};
    const SearchResult meshes = search_layouts(request, 3);
    SearchResult chosen = meshes;
    choose_pipelines(request, chosen);
    ASSERT_EQ(chosen.best.size(), meshes.best.size());
    std::vector<double> expected;
    for (const PlannedLayout& one : meshes.best) {
      PlanRequest alone = request;
      alone.fixed = {.tensor = one.layout.tensor,
                     .pipeline = one.layout.pipeline,
                     .data = one.layout.data,
                     .micro_batch = one.layout.micro_batch,
                     .sequence_parallel = one.layout.sequence_parallel,
                     .distributed_optimizer = one.layout.distributed_optimizer};
      expected.push_back(search_layouts(alone, 0).best.front().time.seconds);
      EXPECT_LE(expected.back(), one.time.seconds);
      if (expected.back() < one.time.seconds) ++faster;
    }
    std::ranges::sort(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(chosen.best[i].time.seconds, expected[i]) << chosen.best[i].layout.text();
      EXPECT_TRUE(fits(request, chosen.best[i].layout));
    }
  }
  EXPECT_GT(faster, 3);
}

// Every way to write `sum` as so many positive numbers.
std::vector<std::vector<std::int64_t>> all_dealings(std::int64_t sum, std::int64_t count) {
  if (count == 1) return {{sum}};
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t last = 1; last <= sum - count + 1; ++last) {
    for (std::vector<std::int64_t>& dealing : all_dealings(sum - last, count - 1)) {
      dealing.push_back(last);
      all.push_back(std::move(dealing));
    }
  }
  return all;
}

// Every schedule, cells, dealing of layers and place of the vocabulary, with whole sequences or two even slices.
std::vector<Layout> all_dealt_pipelines(const PlanRequest& request) {
  const std::int64_t layers = request.config.model.config.num_layers, stages = *request.fixed.pipeline;
  std::vector<Layout> all;
  for (const pipeline::ScheduleKind kind : pipeline::kScheduleKinds) {
    for (const std::int64_t cells : {1, 2}) {
      if (cells * stages > layers) continue;
      for (const std::vector<std::int64_t>& dealing : all_dealings(layers, cells * stages)) {
        for (const bool shared : {false, true}) {
          Layout layout = layout_of(request.config);
          layout.schedule = kind;
          layout.virtual_stages = cells;
          layout.slicing = *request.fixed.slicing;
          layout.recompute = *request.fixed.recompute;
          layout.vocabulary_parallel = shared;
          layout.layers = dealing;
          if (shared && request.fixed.vocabulary_parallel) continue;
          if (with_layout(request.config, layout).StepSettings::faults().empty()) all.push_back(layout);
        }
      }
    }
  }
  return all;
}

TEST(PipelineChoice, DealsLayersOrSharesTheVocabularyWithinOnePercentOfAllWays) {
  RandomSequence random({.seed = 63});
  int uneven = 0, shared = 0, tight = 0;
  for (int trial = 0; trial < 16; ++trial) {
    TrainConfig config = small_pipeline(random).config;
    const PlanRequest drawn_request = small_pipeline(random);
    config.layout.pipeline_parallel = drawn_request.config.layout.pipeline_parallel;
    config.model.config.num_layers = config.layout.pipeline_parallel * drawn(random, {2, 3});
    const std::int64_t words = drawn(random, {50, 4000, 20000});
    config.model.config.vocab_size = words;
    config.batch.global_batch_size = drawn(random, {2, 4});
    config.pipeline.token_slices = drawn(random, {0, 1}) == 0 ? "" : "uniform:2";
    const GivenPipeline given{.is_auto = true,
                              .token_slices = true,
                              .defer_weight_gradients = true,
                              .vocabulary_parallel = trial % 2 == 0,
                              .recompute = true};
    PlanRequest request = pipeline_request(config, given, drawn_request.cluster, words);
    std::vector<std::pair<double, Layout>> all;
    for (const Layout& layout : all_dealt_pipelines(request)) all.emplace_back(seconds_of(request, layout), layout);
    std::ranges::stable_sort(all, {}, &std::pair<double, Layout>::first);
    ASSERT_FALSE(all.empty());
    if (trial % 3 == 2) {  // the fastest does not fit
      const LayoutMemory memory(request.config, request.context());
      request.cluster.device.memory = static_cast<double>(std::ranges::max(memory.planned(all.front().second))) - 1;
    }
    const auto best = std::ranges::find_if(all, [&](const auto& one) { return fits(request, one.second); });
    if (best == all.end()) continue;
    SCOPED_TRACE(fmt::format("trial {}: {}\n{}", trial, best->second.text(), to_toml(request.config)));
    const SearchResult chosen = choose_pipeline(request);
    const PlannedLayout& first = chosen.best.front();
    EXPECT_LE(first.time.seconds, 1.01 * best->first) << first.layout.text();
    EXPECT_DOUBLE_EQ(first.time.seconds, seconds_of(request, first.layout));
    EXPECT_TRUE(fits(request, first.layout)) << first.layout.text();
    EXPECT_TRUE(first.config.faults().empty());
    uneven += first.layout.layers.empty() ? 0 : 1;
    shared += first.layout.vocabulary_parallel ? 1 : 0;
    tight += trial % 3 == 2 ? 1 : 0;
  }
  EXPECT_GT(uneven, 2);
  EXPECT_GT(shared, 1);
  EXPECT_GT(tight, 1);
}

TEST(PipelineChoice, DealsLayersAloneWhereTheScheduleIsGiven) {
  RandomSequence random({.seed = 64});
  PlanRequest drawn_request = small_pipeline(random);
  TrainConfig config = drawn_request.config;
  config.layout.pipeline_parallel = drawn_request.cluster.devices = drawn_request.cluster.links[0].devices = 2;
  config.model.config.num_layers = 12;
  config.model.config.vocab_size = 50000;
  config.batch.global_batch_size = 4;
  config.pipeline.schedule = pipeline::ScheduleKind::kGpipe;
  config.pipeline.layout = "auto";
  const PlanRequest request = pipeline_request(config, {.layout_is_auto = true}, drawn_request.cluster, 50000);
  const PlannedLayout best = choose_pipeline(request).best.front();
  EXPECT_EQ(best.layout.schedule, pipeline::ScheduleKind::kGpipe);
  EXPECT_FALSE(best.layout.defer_weight_gradients || best.layout.vocabulary_parallel);
  EXPECT_GT(cell_layers(best.config)[0], cell_layers(best.config)[1]);  // the last stage has the head
  Layout equal = best.layout;
  equal.layers.clear();
  EXPECT_LT(best.time.seconds, seconds_of(request, equal));
  config.pipeline.layout = "8,4";
  const PlanRequest as_given =
      pipeline_request(config, {.is_auto = true, .layout = true}, drawn_request.cluster, 50000);
  for (const PlannedLayout& one : choose_pipeline(as_given).best) EXPECT_EQ(one.config.pipeline.layout, "8,4");
}

TEST(PipelineChoice, RefusesCutsByDocuments) {
  RandomSequence random({.seed = 1});
  const PlanRequest request = small_pipeline(random);
  TrainConfig config = request.config;
  config.pipeline.token_slices = "documents:4";
  const auto request_of = [&](const GivenPipeline& given) {
    return [&, given] { pipeline_request(config, given, request.cluster, request.vocab_size); };
  };
  EXPECT_THAT(request_of({.is_auto = true}),
              ThrowsMessage<UserError>(HasSubstr("documents:4 goes by their documents")));
  EXPECT_THAT(request_of({.layout_is_auto = true}), ThrowsMessage<UserError>(HasSubstr("--pipeline-layout L,L,..")));
}

}  // namespace
}  // namespace teratron::testing
