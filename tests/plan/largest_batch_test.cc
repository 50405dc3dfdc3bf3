// The largest batch against brute force: every batch of every layout that holds it, by the planned memory.
#include "plan/search/largest_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "cluster/cluster_file.h"
#include "plan/random_request.h"
#include "plan/search/layout_memory.h"

namespace teratron::testing {
namespace {

using namespace plan;

using pipeline::ScheduleKind;
using Shape = std::array<std::int64_t, 3>;

constexpr std::int64_t kMostBatch = 48;  // that brute force looks at

// The layouts of the model on all devices that hold a batch of that many sequences at once.
std::vector<Layout> layouts_of_batch(const PlanRequest& request) {
  const std::int64_t devices = request.cluster.devices, batch = request.config.batch.global_batch_size;
  std::vector<Layout> layouts;
  for (std::int64_t tensor = 1; tensor <= devices; ++tensor) {
    for (std::int64_t stages = 1; stages <= std::min(devices / tensor, request.config.model.config.num_layers);
         ++stages) {
      const std::int64_t data = devices / tensor / stages;
      if (tensor * stages * data != devices || batch % data != 0) continue;
      for (const std::int64_t size : {std::int64_t{1}, std::int64_t{2}, batch / data}) {
        const bool is_one = size == batch / data;  // micro-batch, with which a pipeline is none
        if (batch / data % size != 0 || is_one != (stages == 1 || batch == data)) continue;
        for (const int ways : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
          layouts.push_back({.tensor = tensor,
                             .pipeline = stages,
                             .data = data,
                             .micro_batch = size,
                             .schedule = stages == 1 ? ScheduleKind::k1F1B : ScheduleKind::kGpipe,
                             .recompute = static_cast<Recompute>(ways % 3),
                             .sequence_parallel = ways / 3 % 2 == 1,
                             .distributed_optimizer = ways / 6 == 1});
        }
      }
    }
  }
  std::erase_if(layouts, [&](const Layout& layout) {
    return !request.fixed.allows(layout) || !with_layout(request.config, layout).StepSettings::faults().empty();
  });
  return layouts;
}

std::int64_t fullest(const PlanRequest& request, const Layout& layout) {
  return std::ranges::max(LayoutMemory(request.config, request.context()).planned(layout));
}

std::map<Shape, std::int64_t> batches_by_brute_force(PlanRequest request) {
  std::map<Shape, std::int64_t> most;
  for (std::int64_t batch = 1; batch <= kMostBatch; ++batch) {
    request.config.batch.global_batch_size = batch;
    for (const Layout& layout : layouts_of_batch(request)) {
      std::int64_t& found = most[{layout.tensor, layout.pipeline, layout.data}];
      if (found < batch && static_cast<double>(fullest(request, layout)) <= request.cluster.device.memory) {
        found = batch;
      }
    }
  }
  std::erase_if(most, [](const auto& one) { return one.second == 0; });
  return most;
}

TEST(LargestBatch, IsThatOfBruteForce) {
  RandomSequence random({.seed = 71});
  int compared = 0, fixed = 0;
  for (int trial = 0; trial < 24 && compared < 10; ++trial) {
    PlanRequest request = random_request(random);
    request.config.optimizer.kind = trial % 4 == 0 ? OptimizerKind::kMuon : OptimizerKind::kAdamW;
    if (trial % 3 == 1) request.fixed.recompute = Recompute::kNone;
    request.config.batch.global_batch_size = request.cluster.devices * drawn(random, {1, 2, 3});
    const std::vector<Layout> layouts = layouts_of_batch(request);
    if (layouts.empty()) continue;
    request.cluster.device.memory =
        static_cast<double>(fullest(request, layouts[random.below(layouts.size())])) * drawn_between(random, 1, 1.2);
    const std::map<Shape, std::int64_t> expected = batches_by_brute_force(request);
    if (std::ranges::any_of(expected, [](const auto& one) { return one.second > kMostBatch - 8; })) continue;
    SCOPED_TRACE(fmt::format("trial {}: {} devices, {:.0f} bytes\n{}", trial, request.cluster.devices,
                             request.cluster.device.memory, to_toml(request.config)));
    const SearchResult found = largest_batches(request, 100);
    std::map<Shape, std::int64_t> ours;
    for (const PlannedLayout& one : found.best) {
      ours[{one.layout.tensor, one.layout.pipeline, one.layout.data}] = one.config.batch.global_batch_size;
      EXPECT_TRUE(one.config.StepSettings::faults().empty());
      EXPECT_EQ(layout_of(one.config), one.layout);
      EXPECT_LE(static_cast<double>(std::ranges::max(one.memory)), request.cluster.device.memory);
    }
    EXPECT_EQ(ours, expected);
    EXPECT_TRUE(std::ranges::is_sorted(found.best, std::greater(),
                                       [](const PlannedLayout& one) { return one.config.batch.global_batch_size; }));
    // Of less, the same.
    ASSERT_FALSE(largest_batches(request, 0).best.empty());
    EXPECT_EQ(largest_batches(request, 0).best.front().config.batch.global_batch_size,
              found.best.front().config.batch.global_batch_size);
    ++compared;
    if (request.fixed.recompute) ++fixed;
  }
  EXPECT_GE(compared, 8);
  EXPECT_GT(fixed, 0);
}

// The largest batch takes it for granted beyond a few of them.
TEST(LargestBatch, MemoryIsALineInTheMicroBatchesOfAPipeline) {
  RandomSequence random({.seed = 72});
  int looked_at = 0;
  for (int trial = 0; trial < 60; ++trial) {
    PlanRequest request = random_request(random);
    request.config.batch.global_batch_size = 2 * request.cluster.devices;
    std::vector<Layout> layouts = layouts_on(request.cluster.devices, request.config, {});
    std::erase_if(layouts, [](const Layout& layout) {
      return layout.pipeline == 1 || !pipeline::traits_of(layout.schedule).holds_all || layout.slicing.is_open();
    });
    if (layouts.empty()) continue;
    const Layout& layout = layouts[random.below(layouts.size())];
    const auto bytes_of = [&](std::int64_t micro_batches) {
      request.config.batch.global_batch_size = micro_batches * layout.micro_batch * layout.data;
      return LayoutMemory(request.config, request.context()).planned(layout);
    };
    const std::vector<std::int64_t> few = bytes_of(8), twice = bytes_of(16);
    for (const std::int64_t many : {17, 33, 97}) {
      const std::vector<std::int64_t> planned = bytes_of(many);
      for (std::size_t stage = 0; stage < planned.size(); ++stage) {
        EXPECT_EQ(planned[stage], few[stage] + (twice[stage] - few[stage]) * (many - 8) / 8)
            << many << " of " << layout.text() << "\n"
            << to_toml(request.config);
      }
    }
    ++looked_at;
  }
  EXPECT_GT(looked_at, 20);
}

// TeraPipe, section 4.3: memory allows 32, 8, 4 and 2 sequences of 2048, 4096, 6144 and 8192 tokens.
TEST(LargestBatch, FallsAsSequencesGrow) {
  PlanRequest request{.cluster = find_cluster("p3.16xlarge", 40), .vocab_size = 50257};
  TrainConfig& config = request.config;
  config.model.preset = "gpt3-13B";
  FieldList fields = fields_of(config);
  fields.find("model")->when_set();
  config.backend.fp16 = true;
  config.backend.kind = BackendKind::kCuda;
  request.fixed = {.tensor = 1, .pipeline = 40, .data = 1, .schedule = ScheduleKind::kTeraPipe};
  std::int64_t before = 0;
  for (const std::int64_t tokens : {8192, 4096, 2048}) {
    config.model.seq_length = tokens;
    config.model.config.max_position_embeddings = tokens;
    const std::int64_t batch = largest_batches(request, 0).best.front().config.batch.global_batch_size;
    EXPECT_GE(batch, 2 * before) << tokens;
    before = batch;
  }
  EXPECT_GT(before, 0);
}

TEST(LargestBatch, SaysThatNoneFits) {
  PlanRequest request{.cluster = find_cluster("dgx-a100", 8), .vocab_size = 50257};
  request.config.data_path = {"corpus"};
  request.cluster.device.memory = 1e6;
  EXPECT_THROW(largest_batches(request, 0), UserError);
  request.cluster.device.memory = 8e10;
  request.fixed = {.pipeline = 1, .micro_batch = 4};
  EXPECT_THAT([&] { largest_batches(request, 0); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("--schedule gpipe or terapipe")));
}

}  // namespace
}  // namespace teratron::testing
