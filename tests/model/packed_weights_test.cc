// Training with weights that a step packs once: the bits of training without, in every layout.
#include "executor/packed_weights.h"

#include <gtest/gtest.h>

#include "executor/memory_choices.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

TEST(PackedWeightsOfAStep, LeaveAllBitsAsTheyAre) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kBF16, DType::kF16};
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    RandomPipeline random(seed, true);
    if (seed % 3 == 0) random.study.become_llama(random.layout.mesh);
    random.layout.vocabulary_parallel = seed % 4 == 1 && random.layout.mesh.pipeline > 1;
    const MakeBackend make = [&] { return make_cpu_backend({.compute_dtype = kTypes[seed % std::size(kTypes)]}); };
    const Result without = train(random.study, random.layout, make);
    random.layout.packed_weights = true;
    const Result with = train(random.study, random.layout, make);
    EXPECT_EQ(with.losses, without.losses) << random.text();
    EXPECT_EQ(with.norms, without.norms) << random.text();
    EXPECT_EQ(with.weights, without.weights) << random.text();
    if (HasFailure()) return;
  }
}

// Counts calls of each name.
class Calls final : public CallObserver {
 public:
  void begin(std::string_view operation) override { ++count[std::string(operation)]; }
  void end(std::string_view) override {}
  std::map<std::string, int> count;
};

ExecutorOptions in_slices(int slices, std::int64_t micro_batches, std::int64_t tokens) {
  return {.batch = 1,
          .tokens = tokens,
          .logits_chunk = 8,
          .schedule = pipeline::make_schedule(
              micro_batches == 1 ? pipeline::ScheduleKind::kTeraPipe : pipeline::ScheduleKind::kSeq1F1B,
              {.micro_batches = static_cast<int>(micro_batches), .slices = slices}),
          .cuts = cut_alike(1, std::vector<std::int64_t>(static_cast<std::size_t>(slices), tokens / slices)),
          .packed_weights = WeightPacking{}};
}

TEST(PackedWeightsOfAStep, ArePackedOnceAStepAndForgotten) {
  ModelConfig config = small_config();
  config.max_position_embeddings = 32;
  const auto backend = make_cpu_backend();
  const auto model = make_model(config);
  for (const std::int64_t micro_batches : {1, 3}) {
    Executor executor(*backend, *model, in_slices(4, micro_batches, 32));
    executor.allocate();
    executor.initialize(1);
    const RandomBatch data(1, 32, config.vocab_size, 1);
    const std::vector<MicroBatch> parts(static_cast<std::size_t>(micro_batches), data.part(0, 1));
    for (int step = 0; step < 2; ++step) {
      Calls calls;
      backend->set_observer(&calls);
      executor.forward_backward(parts);
      backend->set_observer(nullptr);
      // Four matrices a layer and the tied table, for each of two products.
      EXPECT_EQ(calls.count["pack_weight"], 2 * (4 * config.num_layers + 1));
      for (const Parameter* parameter : executor.parameters()) {
        for (const TensorRef& packed : parameter->packed) EXPECT_FALSE(packed) << parameter->name;
      }
      executor.update({.learning_rate = 1e-2, .update = step + 1, .gradient_norm = 1});
    }
  }
}

std::int64_t planned_bytes(const ModelConfig& config, const ExecutorOptions& options) {
  const auto model = make_model(config);
  return StagePlan(*model, options, {}, DType::kF32).memory().arena().bytes();
}

TEST(PackedWeightsOfAStep, ForBackwardTakeTheMemoryOfThoseForForward) {
  ModelConfig config = small_config();
  config.hidden_size = 64;
  config.num_attention_heads = 4;
  config.num_layers = 6;
  config.max_position_embeddings = 32;
  ExecutorOptions once = in_slices(4, 1, 32), several = in_slices(4, 3, 32);
  const std::int64_t with_once = planned_bytes(config, once), with_several = planned_bytes(config, several);
  once.packed_weights = several.packed_weights = std::nullopt;
  const std::int64_t matrices = 6 * 12 * 64 * 64 * std::int64_t{sizeof(float)};
  EXPECT_LT(with_once - planned_bytes(config, once), matrices * 3 / 2);
  EXPECT_GE(with_several - planned_bytes(config, several), 2 * matrices);
}

TEST(PackedWeightsOfAStep, AreLeftOutWhereMemoryIsShort) {
  ModelConfig config = small_config();
  config.max_position_embeddings = 16;
  const auto backend = make_cpu_backend();
  const auto is_kept = [&] {
    const auto model = make_model(config);
    ExecutorOptions options = in_slices(4, 1, 16);
    options.packed_weights->as_memory_allows = true;
    choose_by_memory(*model, options, make_single_rank_mesh(), *backend);
    return options.packed_weights.has_value();
  };
  EXPECT_TRUE(is_kept());
  config.hidden_size = 3 << 14;  // of some 90 TB
  config.num_layers = 200;
  EXPECT_FALSE(is_kept());
}

TEST(PackedWeightsOfAStep, AreOfWeightsThatSeveralShortProductsRead) {
  ModelConfig config = small_config();
  const auto packs = [&](int slices, const WeightPacking& packing) {
    const auto model = make_model(config);
    ExecutorOptions options = in_slices(slices, 1, 16);
    options.logits_chunk = 16;
    options.packed_weights = packing;
    return StagePlan(*model, options, {}, DType::kF32).memory().arena().bytes_of(MemoryKind::kPackedWeights) > 0;
  };
  EXPECT_FALSE(packs(1, {}));
  EXPECT_TRUE(packs(2, {}));
  EXPECT_FALSE(packs(2, {.fewest_products = 3}));
  EXPECT_FALSE(packs(2, {.most_rows = 7}));
  EXPECT_TRUE(packs(2, {.most_rows = 8}));
}

}  // namespace
}  // namespace teratron::testing
