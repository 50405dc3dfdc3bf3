// The promise that the layout never changes the result, for pipelines: every schedule, sequences in slices of tokens,
// deferred weight gradients, together with tensor and data parallelism, against one rank.
#include <gtest/gtest.h>

#include "base/trials.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

using pipeline::ScheduleKind;

// In double the layouts may differ only by the order of sums: 1e-10 leaves four digits for three AdamW steps.
TEST(PipelineLayout, ChangesNothingInDoubleOverRandomSchedulesAndSlices) {
  for (std::uint32_t seed = 1; seed <= trials(120U); ++seed) {
    const RandomPipeline random(seed);
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_same(train(random.study, random.layout, kDouble), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

TEST(PipelineLayout, ChangesNothingInDoubleWhateverMicroBatchesHaveWhichSlices) {
  for (std::uint32_t seed = 1; seed <= trials(80U); ++seed) {
    RandomPipeline random(seed);
    random.cut_jointly();
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_same(train(random.study, random.layout, kDouble), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

// The vocabulary of random models, tied and not, shared out over the stages of any schedule.
TEST(VocabularyParallel, ChangesNothingInDoubleOverRandomSchedulesAndSlices) {
  for (std::uint32_t seed = 1; seed <= trials(120U); ++seed) {
    RandomPipeline random(seed);
    if (random.layout.mesh.pipeline == 1) continue;
    if (seed % 3 == 1) random.study.become_llama(random.layout.mesh);
    if (seed % 5 == 1) random.cut_jointly();
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    random.layout.vocabulary_parallel = true;
    expect_same(train(random.study, random.layout, kDouble), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

TEST(PipelineLayout, ChangesNothingInDoubleWhereEveryMicroBatchHasACutOfItsOwn) {
  for (std::uint32_t seed = 1; seed <= trials(40U); ++seed) {
    RandomPipeline random(seed);
    random.cut_each();
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_same(train(random.study, random.layout, kDouble), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

Study pipeline_float_study() {
  Study study{.batch = 6, .tokens = 24, .logits_chunk = 50, .steps = 20, .learning_rate = 1e-4};
  study.config = small_config();
  study.config.num_layers = 4;
  study.config.num_attention_heads = 4;
  study.config.hidden_size = 32;
  study.config.vocab_size = 300;
  study.config.max_position_embeddings = 24;
  study.config.init_method_std = 0.02;
  return study;
}

std::vector<Layout> some_pipelines() {
  return {{.mesh = {.pipeline = 2}, .micro_batch = 6, .schedule = ScheduleKind::kTeraPipe, .slices = {11, 7, 5, 1}},
          {.mesh = {.pipeline = 4}, .micro_batch = 2},
          {.mesh = {.pipeline = 2},
           .schedule = ScheduleKind::kTeraPipe,
           .cuts = {{.sequences = 3, .slice_tokens = {13, 11}},
                    {.sequences = 2, .slice_tokens = {24}},
                    {.sequences = 1, .slice_tokens = {9, 8, 4, 3}}}},
          {.mesh = {.tensor = 2, .pipeline = 2},
           .micro_batch = 1,
           .sequence_parallel = true,
           .schedule = ScheduleKind::kSeq1F1B,
           .slices = {8, 8, 8}},
          {.mesh = {.pipeline = 2},
           .micro_batch = 2,
           .schedule = ScheduleKind::kInterleaved,
           .virtual_stages = 2,
           .defer_weight_gradients = true},
          {.mesh = {.pipeline = 2, .data = 2},
           .micro_batch = 1,
           .schedule = ScheduleKind::kSeq1F1BInterleaved,
           .virtual_stages = 2,
           .slices = {9, 8, 7}},
          {.mesh = {.tensor = 2, .pipeline = 2},
           .micro_batch = 1,
           .sequence_parallel = true,
           .schedule = ScheduleKind::kVZeroBubble,
           .virtual_stages = 2,
           .slices = {10, 8, 6},
           .defer_weight_gradients = true},
          {.mesh = {.pipeline = 2, .data = 2},
           .micro_batch = 2,
           .shard_optimizer = true,
           .recompute = Recompute::kFull,
           .schedule = ScheduleKind::kSeq1F1B,
           .slices = {10, 14},
           .cell_layers = {1, 3},
           .defer_weight_gradients = true}};
}

TEST(PipelineLayout, ChangesNothingOnTheCpuWithinFloatRounding) {
  const Study study = pipeline_float_study();
  const MakeBackend cpu = [] { return make_cpu_backend(); };
  const Result alone = train(study, {.micro_batch = 6}, cpu);
  for (const Layout& layout : some_pipelines()) expect_same(train(study, layout, cpu), alone, 1e-5, layout.text());
}

TEST(PipelineLayout, GivesTheSameBitsAgainAlsoUnderGuardedMemory) {
  Study study = pipeline_float_study();
  study.steps = 3;
  for (const Layout& layout : some_pipelines()) {
    const Result first = train(study, layout, [] { return make_cpu_backend(); });
    const Result second = train(study, layout, [] { return make_cpu_backend({.guard_memory = true}); });
    EXPECT_EQ(first.losses, second.losses) << layout.text();
    EXPECT_EQ(first.weights, second.weights) << layout.text();
  }
}

TEST(PipelineLayout, RecomputingActivationsChangesNoBit) {
  Study study = pipeline_float_study();
  study.steps = 3;
  std::uint32_t list = 0;
  for (Layout layout : some_pipelines()) {
    layout.recompute = Recompute::kNone;
    const Result kept = train(study, layout, [] { return make_cpu_backend(); });
    std::vector<Recomputation> ways = {Recompute::kSelective, Recompute::kFull};
    RandomPipeline random(1);
    random.layout = layout;
    ways.push_back(random.random_recomputation(++list));
    for (const Recomputation& recompute : ways) {
      layout.recompute = recompute;
      EXPECT_EQ(train(study, layout, [] { return make_cpu_backend(); }).weights, kept.weights) << layout.text();
    }
  }
}

// The tolerance of tests/model/layout_test.cc: the rounding of 16 bits, kept small by masters in fp32.
TEST(PipelineLayout, SixteenBitStorageStaysWithinItsRoundingOfFloat) {
  const Study study = pipeline_float_study();
  const Result exact = train(study, {.micro_batch = 6}, [] { return make_cpu_backend(); });
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const MakeBackend make = [&] { return make_cpu_backend({.compute_dtype = dtype}); };
    for (const Layout& layout : some_pipelines()) {
      const Result rounded = train(study, layout, make);
      expect_near(rounded.losses, exact.losses, 2e-3, layout.text() + ": losses");
      expect_near(rounded.weights, exact.weights, 2e-3, layout.text() + ": weights");
    }
  }
}

// Calls work(runner, world) on every rank of a mesh.
void on_mesh(
    const MeshShape& shape, const ExecutorOptions& options, const ModelConfig& config,
    const std::function<void(LanguageModel&, Communicator&)>& work,
    const MakeBackend& make_backend = [] { return make_reference_backend(DType::kF64); }) {
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto backend = make_backend();
    LanguageModel runner(*backend, config, options, std::make_shared<Mesh>(make_mesh(world, shape)));
    runner.allocate();
    runner.initialize(5);
    work(runner, world);
  });
}

TEST(PipelineEvaluation, GivesEveryStageTheLossesAndLogitsOfOneRank) {
  ModelConfig config = small_config();
  config.num_layers = 4;
  config.num_attention_heads = 4;
  const RandomBatch batch(2, 8, config.vocab_size, 8);
  const std::size_t vocab = static_cast<std::size_t>(config.vocab_size);
  const auto losses_and_logits = [&](LanguageModel& runner) {
    std::vector<float> values(2 * 5);
    runner.losses(batch.whole(), 3, values);
    std::vector<float> logits(3 * vocab);
    runner.logits(std::span(batch.ids).first(8), 0, 3, logits);
    values.insert(values.end(), logits.begin(), logits.end());
    return values;
  };
  const ExecutorOptions evaluation{.purpose = Purpose::kEvaluation, .batch = 2, .tokens = 8, .logits_chunk = 2};
  std::vector<float> expected;
  on_mesh({}, evaluation, config, [&](LanguageModel& runner, Communicator&) { expected = losses_and_logits(runner); });
  for (const MeshShape& shape : {MeshShape{.pipeline = 2}, MeshShape{.pipeline = 4}, MeshShape{2, 2, 1}}) {
    on_mesh(shape, evaluation, config, [&](LanguageModel& runner, Communicator& world) {
      const std::vector<float> values = losses_and_logits(runner);
      ASSERT_EQ(values.size(), expected.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(values[i], expected[i], 1e-6) << "value " << i << " on rank " << world.rank();
      }
    });
  }
}

TEST(PipelineEvaluation, WithPackedWeightsHasTheSameBits) {
  ModelConfig config = small_config();
  config.num_layers = 4;
  config.num_attention_heads = 4;
  const RandomBatch batch(2, 8, config.vocab_size, 8);
  const auto losses = [&](const MeshShape& shape, bool packs) {
    ExecutorOptions options{.purpose = Purpose::kEvaluation, .batch = 2, .tokens = 8, .logits_chunk = 2};
    if (packs) options.packed_weights = WeightPacking{};
    std::vector<float> values(2 * 8);
    const auto work = [&](LanguageModel& runner, Communicator& world) {
      std::vector<float> own(values.size());
      for (int call = 0; call < 2; ++call) runner.losses(batch.whole(), 0, own);
      if (world.rank() == 0) values = own;
    };
    on_mesh(shape, options, config, work, [] { return make_cpu_backend(); });
    return values;
  };
  for (const MeshShape& shape : {MeshShape{}, MeshShape{.pipeline = 2}, MeshShape{2, 2, 1}}) {
    EXPECT_EQ(losses(shape, true), losses(shape, false));
  }
}

TEST(PipelineEvaluation, ByARunnerThatTrainsInSlicesIsTheSame) {
  ModelConfig config = small_config();
  config.num_layers = 4;
  const RandomBatch batch(2, 8, config.vocab_size, 8);
  std::vector<float> expected(2 * 8);
  on_mesh({}, {.purpose = Purpose::kEvaluation, .batch = 2, .tokens = 8}, config,
          [&](LanguageModel& runner, Communicator&) { runner.losses(batch.whole(), 0, expected); });
  const ExecutorOptions sliced{
      .batch = 2,
      .tokens = 8,
      .schedule = pipeline::make_schedule(ScheduleKind::kSeq1F1B, {.stages = 2, .micro_batches = 3, .slices = 3}),
      .cuts = cut_alike(2, {3, 4, 1})};
  const ExecutorOptions interleaved{
      .batch = 2,
      .tokens = 8,
      .schedule =
          pipeline::make_schedule(ScheduleKind::kInterleaved, {.stages = 2, .micro_batches = 2, .virtual_stages = 2})};
  const ExecutorOptions folded{
      .batch = 2,
      .tokens = 8,
      .schedule = pipeline::make_schedule(ScheduleKind::kVMin,
                                          {.stages = 2, .micro_batches = 2, .slices = 2, .virtual_stages = 2}),
      .cuts = cut_alike(2, {5, 3})};
  for (const ExecutorOptions& options : {sliced, interleaved, folded}) {
    on_mesh({.pipeline = 2}, options, config, [&](LanguageModel& runner, Communicator&) {
      std::vector<float> values(2 * 8);
      runner.losses(batch.whole(), 0, values);
      for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
    });
  }
}

TEST(PipelineEvaluation, GenerationKeepsEachStagesCache) {
  ModelConfig config = small_config();
  config.num_layers = 3;
  const RandomBatch text(1, 9, config.vocab_size, 6);
  const std::size_t vocab = static_cast<std::size_t>(config.vocab_size);
  std::vector<float> expected(9 * vocab);
  on_mesh({}, {.purpose = Purpose::kEvaluation, .tokens = 9}, config,
          [&](LanguageModel& runner, Communicator&) { runner.logits(text.ids, 0, 9, expected); });
  on_mesh({.pipeline = 3}, {.purpose = Purpose::kGeneration, .tokens = 4}, config,
          [&](LanguageModel& runner, Communicator&) {
            std::vector<float> actual(vocab);
            for (std::size_t begin = 0, piece = 4; begin < 9; begin += piece, piece = begin == 4 ? 2 : 1) {
              runner.logits(std::span(text.ids).subspan(begin, piece), static_cast<std::int64_t>(begin), 1, actual);
              for (std::size_t i = 0; i < vocab; ++i) {
                EXPECT_NEAR(actual[i], expected[(begin + piece - 1) * vocab + i], 1e-6);
              }
            }
          });
}

// A schedule's bound is in whole micro-batches' activations of a stage; what a stage plans for activations grows by it.
TEST(PipelineMemory, HoldsTheActivationsThatTheScheduleAllows) {
  ModelConfig config = small_config();
  config.num_layers = 4;
  config.hidden_size = 96;
  config.max_position_embeddings = 64;
  const auto activations = [&](const pipeline::Schedule& schedule, std::vector<std::int64_t> slices, int stage) {
    std::int64_t bytes = 0;
    run_ranks({}, 2, [&](Communicator& world) {
      const auto backend = make_cpu_backend();
      const LanguageModel runner(*backend, config, {.tokens = 64, .schedule = schedule, .cuts = cut_alike(1, slices)},
                                 std::make_shared<Mesh>(make_mesh(world, {.pipeline = 2})));
      if (world.rank() == stage) bytes = runner.memory().bytes_of(MemoryKind::kActivations);
    });
    return static_cast<double>(bytes);
  };
  const pipeline::ScheduleSize whole{.stages = 2, .micro_batches = 8};
  pipeline::ScheduleSize sliced = whole;
  sliced.slices = 4;
  const std::vector<std::int64_t> slices = {16, 16, 16, 16};
  const double gpipe = activations(pipeline::make_schedule(ScheduleKind::kGpipe, whole), {}, 0);
  const double one = gpipe / 8;
  const double one_f1b = activations(pipeline::make_schedule(ScheduleKind::k1F1B, whole), {}, 0);
  const double terapipe = activations(pipeline::make_schedule(ScheduleKind::kTeraPipe, sliced), slices, 0);
  const double seq1f1b = activations(pipeline::make_schedule(ScheduleKind::kSeq1F1B, sliced), slices, 0);
  EXPECT_NEAR(one_f1b / one, 2, 0.2);
  // Sliced, keys and values of a sequence and their gradients in fp32 come on top: 3 + 2 of 16 hidden sizes a token.
  EXPECT_NEAR(terapipe / one, 8, 0.8);
  EXPECT_LT(seq1f1b / one, 5.0 / 4 + 2 * 5.0 / 16 + 0.1);
  EXPECT_LT(seq1f1b, one_f1b);
}

}  // namespace
}  // namespace teratron::testing
