// The cheap bound of a layout's memory is one: held against the plan by the code that allocates it.
#include "plan/search/layout_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "cluster/cluster_file.h"
#include "cluster/presets.h"
#include "model/llama_shape.h"
#include "plan/random_request.h"
#include "plan/search/layout_time.h"

namespace teratron::testing {
namespace {

using namespace plan;

const Layout& any_of(const std::vector<Layout>& layouts, RandomSequence& random) {
  return layouts[random.below(layouts.size())];
}

// Bytes by kind are those of the stage, with weights and gradients that copies share out too.
TEST(LayoutMemory, KindsOfAStageAddUpToItsMemory) {
  RandomSequence random({.seed = 33});
  int looked_at = 0;
  for (int trial = 0; trial < 60; ++trial) {
    PlanRequest request = random_request(random);
    if (trial % 3 == 0) request.config.layout.data_sharding = DataSharding::kWeights;
    if (trial % 3 == 1) request.config.layout.data_sharding = DataSharding::kGradients;
    if (trial % 5 == 0) request.config.model.config.adapters.rank = 4;  // whose other weights have no gradients
    const std::vector<Layout> layouts = layouts_on(request.cluster.devices, request.config, {});
    if (layouts.empty()) continue;
    const Layout& layout = any_of(layouts, random);
    if (layout.slicing.is_open()) continue;
    const TrainConfig config = with_layout(request.config, layout);
    const std::vector<std::int64_t> stages = memory_of_stages(config, request.context());
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const RankMemory memory = memory_of_stage(config, request.context(), static_cast<int>(stage));
      ASSERT_EQ(memory.needed(), stages[stage]) << layout.text();
      std::int64_t sum = 0;
      for (const std::int64_t bytes : memory.of_kind) {
        EXPECT_GE(bytes, 0) << layout.text();
        sum += bytes;
      }
      EXPECT_LE(sum, memory.arena);
      ++looked_at;
    }
  }
  EXPECT_GT(looked_at, 40);
}

// Whatever lies on a stage, both ends of the model with their one table, too.
TEST(LayoutMemory, CopiesLeaveOutTheirShareOfTheGradientsOfAStage) {
  constexpr std::size_t kGradients =
      static_cast<std::size_t>(std::ranges::find(kMemoryKinds, MemoryKind::kGradients) - kMemoryKinds.begin());
  RandomSequence random({.seed = 34});
  PlanRequest request = random_request(random);
  request.vocab_size = request.config.model.config.vocab_size = 5000;
  request.config.model.config.num_layers = 4;
  request.config.batch.global_batch_size = 8;
  request.config.layout.data_sharding = DataSharding::kGradients;
  for (const auto schedule : {pipeline::ScheduleKind::k1F1B, pipeline::ScheduleKind::kVHalf}) {
    const TrainConfig config =
        with_layout(request.config, {.pipeline = 2,
                                     .data = 2,
                                     .schedule = schedule,
                                     .virtual_stages = schedule == pipeline::ScheduleKind::kVHalf ? 2 : 1,
                                     .distributed_optimizer = true});
    for (const std::size_t stage : {0U, 1U}) {
      const RankMemory whole = StageMemoryPlans(config, request.context()).by_kind(static_cast<int>(stage));
      const auto held = static_cast<double>(whole.of_kind[kGradients]);
      EXPECT_NEAR(static_cast<double>(bytes_left_out(config, request.context(), stage).gradients), held / 2, held / 100)
          << pipeline::name_of(schedule) << ", stage " << stage;
    }
  }
}

TEST(LayoutMemory, IsNoMoreThanThePlanAndNearIt) {
  RandomSequence random({.seed = 21});
  double shares = 0;
  int looked_at = 0;
  for (int trial = 0; trial < 400; ++trial) {
    PlanRequest request = random_request(random);
    if (trial % 4 == 0) request.config.optimizer.kind = OptimizerKind::kMuon;
    if (trial % 3 == 1) become_llama(request.config.model.config);
    FixedLayout fixed;
    if (trial % 5 == 0) fixed.slicing = {.open = Slicing::Open::kJoint};
    const std::vector<Layout> layouts = layouts_on(request.cluster.devices, request.config, fixed);
    if (layouts.empty()) continue;
    Layout layout = any_of(layouts, random);
    const LayoutMemory memory(request.config, request.context());
    std::int64_t least = memory.least(layout);
    if (layout.slicing.open == Slicing::Open::kJoint) {
      const std::vector<Layout> chosen =
          LayoutTimes(request.config, request.cluster, request.vocab_size).chosen(layout);
      layout = any_of(chosen, random);
      least = std::max(least, memory.least(layout));
    }
    // Whatever the slicer chooses.
    if (layout.slicing.open == Slicing::Open::kAlike) {
      layout.slicing = {fmt::format("uniform:{}", 2 + random.below(3))};
      if (!with_layout(request.config, layout).StepSettings::faults().empty()) continue;
    }
    // The bound leaves out what a GPU's operations and Muon's update work in, much of a tiny model's memory.
    MemoryPlanContext context = request.context();
    context.on_gpu = false;
    const std::int64_t planned = std::ranges::max(LayoutMemory(request.config, context).planned(layout));
    ASSERT_LE(least, planned) << "trial " << trial << ": " << layout.text() << "\n" << to_toml(request.config);
    if (request.config.optimizer.kind == OptimizerKind::kMuon) continue;
    shares += static_cast<double>(least) / static_cast<double>(planned);
    ++looked_at;
  }
  EXPECT_GT(looked_at, 200);
  // As measured; a bound that says little would make the search plan everything.
  EXPECT_GT(shares / looked_at, 0.8);
}

TEST(LayoutMemory, NoStageTakesMoreThanTheFirstOrTheLast) {
  RandomSequence random({.seed = 22});
  for (int trial = 0; trial < 200; ++trial) {
    PlanRequest request = random_request(random);
    if (trial % 3 == 1) become_llama(request.config.model.config);
    if (trial % 2 == 1) request.cluster.constants.push_back({"cores", 3, "test"});
    const std::vector<Layout> layouts = layouts_on(request.cluster.devices, request.config, {});
    if (layouts.empty()) continue;
    const Layout& layout = any_of(layouts, random);
    if (layout.slicing.open == Slicing::Open::kAlike) continue;
    const LayoutMemory memory(request.config, request.context());
    EXPECT_EQ(memory.fullest_end(layout), std::ranges::max(memory.planned(layout)))
        << "trial " << trial << ": " << layout.text() << "\n"
        << to_toml(request.config);
  }
}

TEST(LayoutMemory, IsPlannedStageByStageAsFarAsItMustBeKnown) {
  RandomSequence random({.seed = 23});
  int stopped = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const PlanRequest request = random_request(random);
    const std::vector<Layout> layouts = layouts_on(request.cluster.devices, request.config, {});
    if (layouts.empty()) continue;
    Layout layout = any_of(layouts, random);
    if (layout.slicing.open == Slicing::Open::kAlike) continue;
    const LayoutMemory memory(request.config, request.context());
    const std::int64_t most = memory.fullest_end(layout),
                       enough = most / 2 + static_cast<std::int64_t>(random.below(most));
    FullestEnd known;
    memory.plan_on(layout, enough, 1, known);
    EXPECT_EQ(known.stages, 1U);
    memory.plan_on(layout, enough, 1000, known);
    EXPECT_LE(known.bytes, most);
    EXPECT_EQ(known.bytes > enough, most > enough);
    EXPECT_TRUE(known.is_whole || known.bytes > enough);
    if (!known.is_whole) ++stopped;
    memory.plan_on(layout, most, 1000, known);
    EXPECT_TRUE(known.is_whole);
    EXPECT_EQ(known.bytes, most);
  }
  EXPECT_GT(stopped, 3);
}

// Schedules that the search looks at where they are given.
TEST(LayoutMemory, OfSeveralCellsAStageIsNoMoreThanThePlanAndAnEndIsTheFullest) {
  using Kind = pipeline::ScheduleKind;
  RandomSequence random({.seed = 24});
  int looked_at = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const PlanRequest request = random_request(random);
    constexpr std::array kKinds = {Kind::kSeq1F1BInterleaved, Kind::kVMin, Kind::kVHalf, Kind::kVZeroBubble};
    const FixedLayout fixed{.pipeline = 2 + static_cast<std::int64_t>(random.below(3)),
                            .schedule = kKinds[random.below(kKinds.size())]};
    const std::vector<Layout> layouts = layouts_on(request.cluster.devices, request.config, fixed);
    if (layouts.empty()) continue;
    const Layout& layout = any_of(layouts, random);
    if (layout.slicing.is_open()) continue;
    const LayoutMemory memory(request.config, request.context());
    const std::int64_t planned = std::ranges::max(memory.planned(layout));
    EXPECT_LE(memory.least(layout), planned) << layout.text() << "\n" << to_toml(request.config);
    EXPECT_EQ(memory.fullest_end(layout), planned) << layout.text() << "\n" << to_toml(request.config);
    ++looked_at;
  }
  EXPECT_GT(looked_at, 20);
}

TEST(LayoutMemory, CountsThreadsOfProcessorsAndWhatOperationsOfGpusPassOn) {
  RandomSequence random({.seed = 23});
  PlanRequest request = random_request(random);
  const Layout layout{.recompute = Recompute::kFull};
  const auto planned = [&] { return LayoutMemory(request.config, request.context()).planned(layout).front(); };
  MemoryPlanContext of_tensors = request.context();
  ASSERT_TRUE(of_tensors.on_gpu);
  of_tensors.on_gpu = false;
  const std::int64_t of_device = LayoutMemory(request.config, of_tensors).planned(layout).front(), of_gpu = planned();
  EXPECT_GT(of_gpu, of_device);
  request.cluster.constants = {{"cores", 1, "test"}};
  const std::int64_t of_one = planned();
  request.cluster.constants = {{"cores", 2, "test"}};
  const std::int64_t of_two = planned();
  EXPECT_GT(of_one, of_device);
  EXPECT_GT(of_two, of_one);
  EXPECT_LT(of_two - of_one, of_one - of_device);  // helpers pack no panels
  for (const std::string_view name : cluster_preset_names()) EXPECT_EQ(cpu_threads(find_cluster(std::string(name))), 0);
}

// A search asks for threads first, so no constant is read before they are all known to be right.
TEST(LayoutMemory, WrongConstantsOfAClusterAreRefused) {
  RandomSequence random({.seed = 3});
  PlanRequest request = random_request(random);
  request.cluster.device.memory = 1;  // for no layout
  for (const Constant& wrong : {Constant{"cores", 1e10, "test"}, {"cores", 0.5, "test"}, {"corse", 2, "test"}}) {
    request.cluster.constants = {wrong};
    EXPECT_THROW(cpu_threads(request.cluster), UserError) << wrong.name << " " << wrong.value;
    EXPECT_THROW(search_layouts(request, 0), UserError) << wrong.name << " " << wrong.value;
  }
}

}  // namespace
}  // namespace teratron::testing
