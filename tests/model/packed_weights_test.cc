// Weights that a training step packs once, or an evaluation for all its calls: the bits of without, in every layout.
#include "executor/packed_weights.h"

#include <gtest/gtest.h>

#include "executor/memory_choices.h"
#include "model/encoder.h"
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

TEST(PackedWeightsOfAStep, AreNotThoseOfAnEvaluationBetweenSteps) {
  ModelConfig config = small_config();
  config.max_position_embeddings = 32;
  const auto backend = make_cpu_backend();
  const RandomBatch data(1, 32, config.vocab_size, 1);
  const auto losses = [&](std::optional<WeightPacking> packing) {
    const auto model = make_model(config);
    ExecutorOptions options = in_slices(4, 1, 32);
    options.packed_weights = packing;
    Executor executor(*backend, *model, options);
    executor.allocate();
    std::vector<double> all;
    for (const std::uint64_t seed : {1, 2, 3}) {
      executor.initialize(seed);
      all.push_back(executor.evaluate(data.whole()).of_kind.front());
    }
    return all;
  };
  EXPECT_EQ(losses(WeightPacking{}), losses(std::nullopt));
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

// Some texts of a few tokens each, the vectors of all their tokens.
std::vector<float> vectors_of_texts(Backend& backend, const ModelConfig& config, const ExecutorOptions& options) {
  Encoder encoder(backend, config, options);
  encoder.allocate();
  encoder.initialize(1);
  std::vector<float> all;
  for (const std::int64_t texts : {1, 3, 2}) {
    const RandomBatch data(texts, 9, config.vocab_size, static_cast<std::uint32_t>(texts), true);
    std::vector<float> vectors(static_cast<std::size_t>(texts * config.hidden_size));
    encoder.embed(data.whole(), Pooling::kMean, vectors);
    all.insert(all.end(), vectors.begin(), vectors.end());
  }
  return all;
}

TEST(PackedWeightsOfAnEvaluation, ArePackedForTheFirstCallAndLeaveAllBitsAsTheyAre) {
  ModelConfig config = small_bert_config();
  config.hidden_size = 128;  // products of so many inputs read weights in place where they are not packed
  config.num_attention_heads = 4;
  config.intermediate_size = 512;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const auto backend = make_cpu_backend({.compute_dtype = dtype});
    ExecutorOptions options{.purpose = Purpose::kEvaluation, .batch = 3, .tokens = 9, .logits_chunk = 1};
    const std::vector<float> without = vectors_of_texts(*backend, config, options);
    options.packed_weights = WeightPacking{.processor = {.compute_dtype = dtype}};
    Calls calls;
    backend->set_observer(&calls);
    EXPECT_EQ(vectors_of_texts(*backend, config, options), without);
    backend->set_observer(nullptr);
    EXPECT_EQ(calls.count["pack_weight"], 4 * config.num_layers);
  }
}

TEST(PackedWeightsOfAnEvaluation, AreOfWholeWeightsAloneAndOfCallsWithFewRows) {
  ModelConfig config = small_config();
  config.hidden_size = 32;  // blocks of weights in tiles
  config.num_attention_heads = 2;
  const auto packed_bytes = [&](ExecutorOptions options) {
    const auto model = make_model(config);
    return StagePlan(*model, options, {}, DType::kF32).memory().arena().bytes_of(MemoryKind::kPackedWeights);
  };
  ExecutorOptions options{.purpose = Purpose::kEvaluation,
                          .batch = 2,
                          .tokens = 9,
                          .logits_chunk = 4,
                          .packed_weights = WeightPacking{.most_rows = 18}};
  EXPECT_GT(packed_bytes(options), 0);
  options.packed_weights->most_rows = 17;
  EXPECT_EQ(packed_bytes(options), 0);
  options.packed_weights->most_rows = 18;
  options.weight_tiles = DType::kQ8Tile;
  EXPECT_EQ(packed_bytes(options), 0);
  options.weight_tiles.reset();
  options.purpose = Purpose::kGeneration;
  EXPECT_EQ(packed_bytes(options), 0);
}

}  // namespace
}  // namespace teratron::testing
