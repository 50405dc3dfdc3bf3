// Ranks are planned from plain values: all ranks of a large job in one process, byte for byte what they take when they
// run.
#include "executor/stage/stage_plan.h"

#include <gtest/gtest.h>

#include <array>

#include "comm/launch.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

constexpr std::array kKinds = {MemoryKind::kWeights,      MemoryKind::kGradients,     MemoryKind::kOptimizer,
                               MemoryKind::kActivations,  MemoryKind::kPackedWeights, MemoryKind::kWorkspace,
                               MemoryKind::kCommunication};

// Bytes of an arena: in all, then by kind.
std::vector<std::int64_t> bytes_of(const Arena& arena) {
  std::vector<std::int64_t> bytes = {arena.bytes()};
  for (const MemoryKind kind : kKinds) bytes.push_back(arena.bytes_of(kind));
  return bytes;
}

// Memory that a back end was asked for.
class CountedMemory final : public Allocator {
 public:
  explicit CountedMemory(Allocator& from) : from_(from) {}
  void* allocate(std::int64_t bytes) override {
    taken += bytes;
    return from_.allocate(bytes);
  }
  void release(void* memory) noexcept override { from_.release(memory); }
  std::int64_t taken = 0;

 private:
  Allocator& from_;
};

ModelConfig deep_config() {
  ModelConfig config = small_config();
  config.num_layers = 35;
  config.num_attention_heads = 8;
  config.hidden_size = 64;
  config.max_position_embeddings = 32;
  return config;
}

// 8 x 35 x 8 ranks, as arXiv 2201.11990 trained 530B parameters.
TEST(StagePlan, IsWhatLiveRanksTakeForEveryRankOfALargeJob) {
  const MeshShape shape{.tensor = 8, .pipeline = 35, .data = 8};
  ASSERT_EQ(shape.ranks(), 2240);
  const ModelConfig config = deep_config();
  const ExecutorOptions options{
      .batch = 1,
      .tokens = 32,
      .logits_chunk = 256,
      .schedule = pipeline::make_schedule(pipeline::ScheduleKind::k1F1B, {.stages = 35, .micro_batches = 40}),
      .sequence_parallel = true,
      .shard_optimizer = true};
  std::vector<std::vector<std::int64_t>> planned;
  std::int64_t moments = 0;
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    const RankCoordinates place = rank_coordinates(shape, rank);
    const auto model = make_model(config, place.tensor);
    const StagePlan plan(*model, options, place, DType::kBF16);
    planned.push_back(bytes_of(plan.memory().arena()));
    moments += planned.back()[3];
  }
  // The lower half of the masters and two moments of every parameter at least, the token table at both ends; what is
  // held twice and rounded up is less than as much again.
  const std::int64_t parameters = config.parameters() + config.vocab_size * config.hidden_size;
  EXPECT_GE(moments, 10 * parameters);
  EXPECT_LT(moments, 20 * parameters);
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto mesh = std::make_shared<Mesh>(make_mesh(world, shape));
    EXPECT_EQ(mesh->coordinates(), rank_coordinates(shape, world.rank()));
    if (world.rank() % 373 != 0 && world.rank() + 1 != shape.ranks()) return;
    const auto backend = make_cpu_backend({.compute_dtype = DType::kBF16});
    const auto model = make_model(config, mesh->coordinates().tensor);
    Executor live(*backend, *model, options, mesh);
    EXPECT_EQ(bytes_of(live.memory()), planned[static_cast<std::size_t>(world.rank())]) << "rank " << world.rank();
  });
}

// Korthikanti et al. (arXiv 2205.05198) section 4.2: with sequence parallelism all activations are shared out.
TEST(StagePlan, SharesActivationsOutAmongSequenceParallelRanks) {
  const auto activations = [](int ranks) {
    const ModelConfig config = deep_config();
    const auto model = make_model(config, {.rank = 0, .size = ranks});
    const StagePlan plan(*model, {.batch = 2, .tokens = 32, .logits_chunk = 256, .sequence_parallel = ranks > 1},
                         {.tensor = {.rank = 0, .size = ranks}}, DType::kF32);
    return static_cast<double>(plan.memory().arena().bytes_of(MemoryKind::kActivations));
  };
  // Ids and targets, of 8 bytes a token where a layer keeps 10 * 64 * 4, every rank has.
  EXPECT_NEAR(activations(4) / activations(1), 1.0 / 4, 0.01);
}

// Of every member a data-parallel rank keeps the elements of its run alone: no more than a share and, for each bucket,
// the rounding of its length.
TEST(StagePlan, KeepsAShareOfAShardedOptimizerOnEachRank) {
  const auto moments = [](int ranks, int rank) {
    const auto model = make_model(deep_config());
    const StagePlan plan(*model, {.tokens = 32, .logits_chunk = 256, .shard_optimizer = ranks > 1},
                         {.data = {.rank = rank, .size = ranks}}, DType::kF32);
    return static_cast<double>(plan.memory().arena().bytes_of(MemoryKind::kOptimizer));
  };
  const double all = moments(1, 0);
  for (const int ranks : {2, 4}) {
    for (int rank = 0; rank < ranks; ++rank) EXPECT_NEAR(moments(ranks, rank), all / ranks, 0.01 * all / ranks) << rank;
  }
}

constexpr std::array kHeads = {ModelHead::kPretraining, ModelHead::kNone,  ModelHead::kClassification,
                               ModelHead::kChoice,      ModelHead::kSpans, ModelHead::kTokens,
                               ModelHead::kVectors};

TEST(StagePlan, IsWhatRanksOfRandomLayoutsTakeOfAnyModel) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const bool is_encoder = seed % 2 == 0, is_llama = seed % 4 == 1;
    RandomPipeline random(seed, !is_encoder);
    if (is_encoder) random.study.become_bert(kHeads[seed / 2 % kHeads.size()], random.layout);
    if (is_llama) random.study.become_llama(random.layout.mesh);
    if (!is_encoder && seed % 3 == 0) random.cut_jointly();
    random.layout.vocabulary_parallel = !is_encoder && seed / 2 % 3 > 0 && random.layout.mesh.pipeline > 1;
    const Layout& layout = random.layout;
    const ExecutorOptions options{
        .batch = layout.sequences_of(0),
        .tokens = random.study.tokens,
        .logits_chunk = random.study.logits_chunk,
        .schedule = layout.schedule_of(3),
        .cuts = layout.cuts.empty() ? cut_alike(layout.micro_batch, layout.slices) : layout.cuts,
        .recompute = layout.recompute,
        .kept_layers = layout.kept_layers,
        .packed_weights = seed % 3 == 0 ? std::optional(WeightPacking{}) : std::nullopt,
        .sequence_parallel = layout.sequence_parallel,
        .shard_optimizer = layout.shard_optimizer,
        .cell_layers = layout.cell_layers};
    run_ranks({}, layout.mesh.ranks(), [&](Communicator& world) {
      const auto backend = make_cpu_backend();
      const auto mesh = std::make_shared<Mesh>(make_mesh(world, layout.mesh));
      const auto make = [&](const RankCoordinates& rank) {
        return make_model(random.study.config, rank.tensor, layout.vocabulary_stages(rank.pipeline));
      };
      const auto model = make(mesh->coordinates());
      Executor live(*backend, *model, options, mesh);

      const RankCoordinates place = rank_coordinates(layout.mesh, world.rank());
      const auto offline_model = make(place);
      CountedMemory memory(*backend);
      StagePlan offline(*offline_model, options, place, DType::kF32);
      EXPECT_EQ(bytes_of(live.memory()), bytes_of(offline.memory().arena())) << random.text();
      offline.allocate(memory);
      EXPECT_EQ(memory.taken, offline.memory().arena().bytes());
    });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace teratron::testing
