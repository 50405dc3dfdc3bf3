// Choices of a GPU by how much memory it has: rows of logits, and activations.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/block_size.h"
#include "comm/launch.h"
#include "emulated_gpu/emulator.h"
#include "executor/device_memory.h"
#include "executor/executor.h"
#include "executor/memory_choices.h"
#include "model/make_model.h"
#include "model/train_in_layout.h"
#include "pipeline/generators.h"

namespace teratron::testing {
namespace {

ExecutorOptions options_for(int stages, std::int64_t rows = 0) {
  return {.batch = 16,
          .tokens = 1024,
          .logits_chunk = rows,
          .schedule = pipeline::make_schedule(pipeline::ScheduleKind::k1F1B, {.stages = stages, .micro_batches = 2})};
}

ModelConfig wide_config() {
  ModelConfig config = small_config();
  config.vocab_size = 20000;
  config.max_position_embeddings = 1024;
  return config;
}

std::int64_t planned_bytes(const ExecutorOptions& options, const RankCoordinates& place) {
  const auto model = make_model(wide_config(), place.tensor);
  const StagePlan plan(*model, options, place, DType::kF32);
  return plan.memory().arena().bytes() + device_memory_of(plan, DType::kF32, true).bytes();
}

// The choices of all ranks of a mesh on one device that has some more memory than what its back ends take by
// themselves.
std::vector<ExecutorOptions> all_chosen(const MeshShape& shape, const ExecutorOptions& given, std::int64_t bytes) {
  std::vector<ExecutorOptions> chosen(static_cast<std::size_t>(shape.ranks()));
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto backend = make_cuda_backend();
    const Mesh mesh = make_mesh(world, shape);
    world.barrier();
    if (world.rank() == 0) {
      emulated::set_device_memory(emulated::device_memory_in_use() + static_cast<std::size_t>(bytes));
    }
    world.barrier();
    const auto model = make_model(wide_config(), mesh.coordinates().tensor);
    ExecutorOptions& options = chosen[static_cast<std::size_t>(world.rank())];
    options = given;
    choose_by_memory(*model, options, mesh, *backend);
    world.barrier();
  });
  emulated::set_device_memory(std::size_t{8} << 30);
  return chosen;
}

std::int64_t chosen_rows(const MeshShape& shape, std::int64_t bytes) {
  const std::vector<ExecutorOptions> chosen = all_chosen(shape, options_for(shape.pipeline), bytes);
  for (const ExecutorOptions& of_rank : chosen) EXPECT_EQ(of_rank.logits_chunk, chosen.front().logits_chunk);
  return chosen.front().logits_chunk;
}

TEST(LogitsChunk, IsTheMostThatLeavesATenthOfTheDeviceFree) {
  for (const std::int64_t rows : {8192, 4096, 512, 256}) {
    const std::int64_t needed = planned_bytes(options_for(1, rows), {}) / 9 * 10;
    EXPECT_EQ(chosen_rows({}, needed + 100), rows);
    EXPECT_EQ(chosen_rows({}, needed - 100), std::max<std::int64_t>(rows / 2, 256));
  }
  EXPECT_EQ(chosen_rows({}, std::int64_t{1} << 40), 8192);
}

TEST(LogitsChunk, IsOneForAllRanksAndSharesTheDevice) {
  // The last stage alone holds logits.
  const RankCoordinates last{.pipeline = {1, 2}};
  const std::int64_t needed = planned_bytes(options_for(2, 2048), last) / 9 * 10;
  for (const int copies : {1, 2}) {
    const MeshShape shape{.pipeline = 2, .data = copies};
    EXPECT_EQ(chosen_rows(shape, shape.ranks() * needed + 1000), 2048);
    EXPECT_EQ(chosen_rows(shape, shape.ranks() * needed - 1000), 1024);
  }
}

TEST(LogitsChunk, IsWhatTheCallerSaysAnd256OnCpus) {
  const auto cpu = make_cpu_backend(), gpu = make_cuda_backend();
  const auto model = make_model(wide_config(), {});
  ExecutorOptions on_cpu = options_for(1), given = options_for(1, 77);
  on_cpu.kept_layers = std::nullopt;
  choose_by_memory(*model, on_cpu, make_single_rank_mesh(), *cpu);
  EXPECT_EQ(on_cpu.logits_chunk, block_size(256, 2));
  EXPECT_EQ(on_cpu.kept_layers, 0);
  choose_by_memory(*model, given, make_single_rank_mesh(), *gpu);
  EXPECT_EQ(given.logits_chunk, 77);
  EXPECT_EQ(given.kept_layers, 0);
}

// Logits come first: a chunk costs more than norms and activations that are made again.
TEST(KeptLayers, AreAsManyAsLeaveATenthOfTheDeviceFree) {
  const std::int64_t layers = wide_config().num_layers;
  ASSERT_GT(layers, 1);
  ExecutorOptions options = options_for(1, 8192);
  for (std::int64_t kept = 0; kept <= layers; ++kept) {
    options.kept_layers = kept;
    const std::int64_t needed = planned_bytes(options, {}) / 9 * 10;
    ExecutorOptions asked = options_for(1);
    asked.kept_layers = std::nullopt;
    const ExecutorOptions exactly = all_chosen({}, asked, needed + 100).front();
    EXPECT_EQ(exactly.kept_layers, kept);
    EXPECT_EQ(exactly.logits_chunk, 8192);
    if (kept == 0) continue;
    EXPECT_EQ(all_chosen({}, asked, needed - 100).front().kept_layers, kept - 1);
  }
}

TEST(KeptLayers, AreTheOwnOfEachStage) {
  // The first stage of a pipeline holds more micro-batches than the last one, which has room for logits besides.
  ExecutorOptions asked = options_for(2, 256);
  asked.kept_layers = std::nullopt;
  const RankCoordinates first{.pipeline = {0, 2}}, last{.pipeline = {1, 2}};
  ExecutorOptions all = options_for(2, 256);
  all.kept_layers = 1;
  const std::int64_t of_first = planned_bytes(all, first), of_last = planned_bytes(all, last);
  ASSERT_NE(of_first, of_last);
  const std::int64_t fewer = std::min(of_first, of_last);
  const std::vector<ExecutorOptions> chosen = all_chosen({.pipeline = 2}, asked, 2 * (fewer / 9 * 10 + 100));
  EXPECT_EQ(chosen[0].kept_layers, fewer == of_first ? 1 : 0);
  EXPECT_EQ(chosen[1].kept_layers, fewer == of_last ? 1 : 0);
}

// All ranks say together how they share a device, also those with nothing to choose.
TEST(KeptLayers, AreOfTheStagesThatMakeNotEverythingAgain) {
  ExecutorOptions asked = options_for(2, 256);
  asked.kept_layers = std::nullopt;
  asked.recompute = Recomputation(std::vector{StageRecompute{.kind = Recompute::kFull}, StageRecompute{}});
  const std::vector<ExecutorOptions> chosen = all_chosen({.pipeline = 2}, asked, std::int64_t{1} << 40);
  EXPECT_EQ(chosen[0].kept_layers, 0);
  EXPECT_EQ(chosen[1].kept_layers, 1);
}

// Bytes that a rank of one stage takes beside its arena, against the plan: scratch alone, before the first step and in
// three, and with graphs.
struct Beside {
  DeviceMemory planned;
  std::int64_t taken_before_step = 0, taken = 0, taken_without_graphs = 0;
};

Beside beside_arena(const Study& given, const Layout& layout, DType dtype) {
  Beside beside;
  for (const bool graphs : {true, false}) {
    Backend* gpu = nullptr;
    std::int64_t libraries = 0;
    Study study = given;
    const auto taken = [&](const Executor& executor) {
      return gpu->taken_bytes() - libraries - executor.plan().memory().arena().bytes();
    };
    study.take_weights = [&](Executor& executor) { beside.taken_before_step = taken(executor); };
    study.before_update = [&](Executor& executor) {
      if (graphs) beside.planned = device_memory_of(executor.plan(), dtype, gpu->captures_graphs());
      (graphs ? beside.taken : beside.taken_without_graphs) = taken(executor);
    };
    train(study, layout, [&] {
      auto made = make_cuda_backend({.compute_dtype = dtype, .graphs = graphs});
      gpu = made.get();
      libraries = gpu->taken_bytes();
      return made;
    });
  }
  return beside;
}

TEST(DeviceMemory, IsPlannedForOperationsAndGraphs) {
  std::int64_t graphs = 0;
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    const DType dtype = seed % 2 == 0 ? DType::kBF16 : DType::kF32;
    Layout layout{.micro_batch = seed % 2 == 0 ? 1 : 2, .recompute = seed == 3 ? Recompute::kFull : Recompute::kNone};
    if (seed == 1 || seed == 2) {
      layout.schedule = pipeline::ScheduleKind::kSeq1F1B;
      layout.slices = {7, 4, 1};
    }
    layout.defer_weight_gradients = seed == 4;
    Study study{.config = small_config(), .batch = 2, .tokens = 12, .seed = seed};
    study.steps = 2;
    study.config.num_layers = 1;
    study.config.num_attention_heads = 4;
    study.config.hidden_size = 32;
    study.config.max_position_embeddings = 12;
    if (seed == 2 || seed == 4) study.become_llama({});
    if (seed == 3) study.become_bert(ModelHead::kSpans, layout);
    const Beside beside = beside_arena(study, layout, dtype);
    SCOPED_TRACE(study.text() + "; " + layout.text());
    EXPECT_GT(beside.taken_before_step, 0);
    EXPECT_EQ(beside.taken_before_step, beside.planned.scratch);
    EXPECT_EQ(beside.taken_without_graphs, beside.planned.scratch) << "nothing grows in a step";
    EXPECT_LE(beside.taken - beside.taken_without_graphs, beside.planned.graphs);
    graphs += beside.taken - beside.taken_without_graphs;
  }
  EXPECT_GT(graphs, 0);
}

// Where a batch is long, the sums before the activation's derivative are the largest, and the plan is what they take.
TEST(DeviceMemory, IsThatOfTheLargestOperation) {
  Study study{.config = small_config(), .batch = 8, .tokens = 16};
  study.become_llama({});
  study.config.num_layers = 1;
  study.config.hidden_size = 8 * study.config.num_attention_heads;
  study.steps = 1;
  study.config.intermediate_size = 512;
  study.config.max_position_embeddings = 16;
  const Beside beside = beside_arena(study, {.micro_batch = 8}, DType::kBF16);
  EXPECT_EQ(beside.planned.scratch, 8 * 16 * 512 * 4);
  EXPECT_EQ(beside.taken_without_graphs, beside.planned.scratch);
}

}  // namespace
}  // namespace teratron::testing
