// How many rows of logits a GPU holds at a time, by how much memory it has.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/block_size.h"
#include "comm/launch.h"
#include "emulated_gpu/emulator.h"
#include "executor/executor.h"
#include "executor/logits_chunk.h"
#include "model/make_model.h"
#include "model/random_batch.h"
#include "pipeline/generators.h"

namespace teratron {
namespace {

using namespace test;  // NOLINT: a test of its helpers

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

std::int64_t planned_bytes(std::int64_t rows, const RankCoordinates& place) {
  const auto model = make_model(wide_config(), place.tensor);
  const StagePlan plan(*model, options_for(place.pipeline.size, rows), place, DType::kF32);
  return plan.memory().arena().bytes();
}

// The choice of all ranks of a mesh on one device that has some more memory than what its back ends take by themselves.
std::int64_t chosen(const MeshShape& shape, std::int64_t bytes) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(shape.ranks()));
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto backend = make_cuda_backend();
    const Mesh mesh = make_mesh(world, shape);
    world.barrier();
    if (world.rank() == 0) {
      emulated::set_device_memory(emulated::device_memory_in_use() + static_cast<std::size_t>(bytes));
    }
    world.barrier();
    const auto model = make_model(wide_config(), mesh.coordinates().tensor);
    const ExecutorOptions options = options_for(shape.pipeline);
    rows[static_cast<std::size_t>(world.rank())] = choose_logits_chunk(*model, options, mesh, *backend);
    world.barrier();
  });
  emulated::set_device_memory(std::size_t{8} << 30);
  for (const std::int64_t of_rank : rows) EXPECT_EQ(of_rank, rows.front());
  return rows.front();
}

TEST(LogitsChunk, IsTheMostThatLeavesATenthOfTheDeviceFree) {
  for (const std::int64_t rows : {8192, 4096, 512, 256}) {
    const std::int64_t needed = planned_bytes(rows, {}) / 9 * 10;
    EXPECT_EQ(chosen({}, needed + 100), rows);
    EXPECT_EQ(chosen({}, needed - 100), std::max<std::int64_t>(rows / 2, 256));
  }
  EXPECT_EQ(chosen({}, std::int64_t{1} << 40), 8192);
}

TEST(LogitsChunk, IsOneForAllRanksAndSharesTheDevice) {
  // The last stage alone holds logits.
  const RankCoordinates last{.pipeline = {1, 2}};
  const std::int64_t needed = planned_bytes(2048, last) / 9 * 10;
  for (const int copies : {1, 2}) {
    const MeshShape shape{.pipeline = 2, .data = copies};
    EXPECT_EQ(chosen(shape, shape.ranks() * needed + 1000), 2048);
    EXPECT_EQ(chosen(shape, shape.ranks() * needed - 1000), 1024);
  }
}

TEST(LogitsChunk, IsWhatTheCallerSaysAnd256OnCpus) {
  const auto cpu = make_cpu_backend();
  const auto model = make_model(wide_config(), {});
  EXPECT_EQ(choose_logits_chunk(*model, options_for(1), make_single_rank_mesh(), *cpu), block_size(256, 2));
  EXPECT_EQ(choose_logits_chunk(*model, options_for(1, 77), make_single_rank_mesh(), *make_cuda_backend()), 77);
}

}  // namespace
}  // namespace teratron
