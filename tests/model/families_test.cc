// Families after GPT-2: fewer key heads than heads, rotary positions, RMS norms, gates, windows, parallel residuals,
// untied outputs, mixed at random. What holds for GPT-2 holds for them: the gradient is the derivative, no layout
// changes the result, generation by caches gives the logits of the whole text, and plans are what is taken.
#include <gtest/gtest.h>

#include "base/trials.h"
#include "model/derivative_check.h"
#include "model/presets.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

ModelConfig random_config(std::uint32_t seed) {
  Study study{.config = small_config(), .seed = seed};
  study.config.num_attention_heads = 2;
  study.become_llama({});
  return study.config;
}

TEST(Families, GradientIsTheDerivativeAlongRandomDirections) {
  for (std::uint32_t seed = 1; seed <= trials(15U); ++seed) {
    const auto backend = make_reference_backend(DType::kF64);
    const ModelConfig config = random_config(seed);
    LanguageModel runner(*backend, config,
                         {.batch = 3, .tokens = 7, .logits_chunk = 4, .first_keys = true, .position_ids = true});
    runner.allocate();
    runner.initialize(11);
    RandomBatch batch(3, 7, config.vocab_size, seed);
    if (seed % 3 == 0) batch.add_documents(0, seed);
    expect_gradient_is_the_derivative(runner, batch.whole());
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// In double the layouts may differ only by the order of sums: 1e-10 leaves four digits for three AdamW steps.
TEST(Families, TensorAndDataParallelismChangeNothingInDouble) {
  for (std::uint32_t seed = 1; seed <= trials(60U); ++seed) {
    RandomStudy random(seed);
    const Layout layout = random.layout();
    random.study.become_llama(layout.mesh);
    random.study.muon = seed % 4 == 0;
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_same(train(random.study, layout, kDouble), alone, 1e-10, random.study.text() + "; " + layout.text());
    if (HasFailure()) return;
  }
}

TEST(Families, PipelinesAndSlicesChangeNothingInDouble) {
  for (std::uint32_t seed = 1; seed <= trials(100U); ++seed) {
    RandomPipeline random(seed);
    random.study.become_llama(random.layout.mesh);
    random.study.documents = seed % 3 == 0;
    if (seed % 4 == 0) random.cut_jointly();
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_same(train(random.study, random.layout, kDouble), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

TEST(Families, RecomputingActivationsAndRepeatingChangeNoBitOnTheCpu) {
  for (std::uint32_t seed = 1; seed <= trials(20U); ++seed) {
    RandomPipeline random(seed);
    random.study.become_llama(random.layout.mesh);
    const MakeBackend cpu = [&] {
      return make_cpu_backend({.compute_dtype = seed % 2 == 0 ? DType::kF32 : DType::kBF16, .guard_memory = true});
    };
    random.layout.recompute = Recompute::kNone;
    const Result kept = train(random.study, random.layout, cpu);
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      random.layout.recompute = recompute;
      if (recompute != Recompute::kNone) random.layout.kept_layers = 0;
      EXPECT_EQ(train(random.study, random.layout, cpu).weights, kept.weights) << random.text();
    }
    if (HasFailure()) return;
  }
}

// A prompt in two uneven pieces, then token by token, on several ranks, beside the whole text on one.
TEST(Families, CachedGenerationGivesTheLogitsOfTheWholeText) {
  for (std::uint32_t seed = 1; seed <= trials(30U); ++seed) {
    Study study{.config = small_config(), .seed = seed};
    study.config.num_attention_heads = 2;
    const MeshShape mesh{.tensor = seed % 2 == 0 ? 2 : 1};
    study.become_llama(mesh);
    const ModelConfig& config = study.config;
    const RandomBatch text(1, 9, config.vocab_size, seed);
    const auto vocab = static_cast<std::size_t>(config.vocab_size);
    std::vector<float> expected(9 * vocab);
    const auto backend = make_reference_backend(DType::kF64);
    LanguageModel whole(*backend, config, {.purpose = Purpose::kEvaluation, .tokens = 9});
    whole.allocate();
    whole.initialize(5);
    whole.logits(text.ids, 0, 9, expected);
    run_ranks({}, mesh.ranks(), [&](Communicator& world) {
      const auto own = make_reference_backend(DType::kF64);
      LanguageModel cached(*own, config, {.purpose = Purpose::kGeneration, .tokens = 4, .caches = 2},
                           std::make_shared<Mesh>(make_mesh(world, mesh)));
      cached.allocate();
      cached.initialize(5);
      std::vector<float> logits(vocab);
      const auto expect_logits = [&](std::size_t position) {
        for (std::size_t i = 0; i < vocab; ++i) {
          ASSERT_NEAR(logits[i], expected[position * vocab + i], 1e-5) << study.text() << ", position " << position;
        }
      };
      cached.logits(std::span(text.ids).first(4), 0, 1, logits, 1);
      expect_logits(3);
      cached.logits(std::span(text.ids).subspan(4, 2), 4, 1, logits, 1);
      expect_logits(5);
      cached.copy_cache(1, 0, 6);
      for (std::size_t position = 6; position < 9; ++position) {
        const std::vector<std::int32_t> ids = {text.ids[position]};
        const std::vector<std::int32_t> positions = {static_cast<std::int32_t>(position)};
        cached.next_logits(ids, positions, logits);
        expect_logits(position);
      }
    });
    if (HasFailure()) return;
  }
}

// Caches hold keys and values alone, of key heads: of a model with as many key heads as heads, two of its hidden sizes.
TEST(Families, CachesHoldKeysAndValuesAlone) {
  const auto backend = make_cpu_backend();
  const auto cache_bytes = [&](std::int64_t key_heads) {
    ModelConfig config;
    config.num_layers = 1;
    config.hidden_size = 512;
    config.num_attention_heads = 8;
    config.num_key_value_heads = key_heads;
    config.vocab_size = 64;
    const LanguageModel runner(*backend, config, {.purpose = Purpose::kGeneration, .tokens = 1, .caches = 4});
    return runner.memory().bytes_of(MemoryKind::kActivations);
  };
  constexpr double kCache = 4 * 1024 * 2 * 512 * 4;  // caches, positions, keys and values, hidden size, bytes
  EXPECT_NEAR(static_cast<double>(cache_bytes(8)) / kCache, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(cache_bytes(1)) / kCache, 1.0 / 8, 0.01);
}

// Parameters of the published checkpoints, as their pages at Hugging Face count them.
TEST(Families, PresetsHaveThePublishedNumbersOfParameters) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"llama-15m", 15191712},          {"smollm2-135m", 134515008},  {"tinyllama-1.1b", 1100048384},
      {"llama-3.2-1b", 1235814400},     {"llama-3.1-8b", 8030261248}, {"llama-3.1-70b", 70553706496},
      {"llama-3.1-405b", 405853388800}, {"mistral-7b", 7241732096},   {"qwen2.5-0.5b", 494032768},
      {"qwen3-0.6b", 596049920},        {"pythia-160m", 162322944}};
  for (const auto& [name, parameters] : published) {
    const ModelPreset& preset = find_model_preset(name);
    ModelConfig config;
    preset.apply_to(config);
    config.vocab_size = preset.vocabulary > 0 ? preset.vocabulary : config.family().usual_vocabulary;
    EXPECT_EQ(config.parameters(), parameters) << name;
    EXPECT_TRUE(config.faults().empty()) << name;
  }
}

// The operations of an update, from the shapes of the model: those of Kaplan et al. (arXiv 2001.08361), 6 a parameter
// that is multiplied, and those of causal attention.
TEST(Families, OperationsFollowFromTheShapes) {
  ModelConfig config;
  find_model_preset("llama-3.1-8b").apply_to(config);
  config.vocab_size = 128256;
  const double tokens = 8192, heads = 32, head_size = 128;
  const double products = static_cast<double>(config.parameters()) - 128256.0 * 4096 - 65 * 4096;  // table, norms
  const double attention = 32 * 6 * heads * head_size * tokens;  // 12 a head, position and layer; half are seen
  EXPECT_DOUBLE_EQ(config.training_flops_per_token(8192), 6 * products + attention);
}

}  // namespace
}  // namespace teratron::testing
