// The promise that the layout never changes the result: training split over tensor- and data-parallel ranks against one
// rank, dropout on, over random shapes, layouts and seeds.
#include <gtest/gtest.h>

#include "base/trials.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

// In double the layouts may differ only by the order of sums: 1e-10 leaves four digits for three AdamW steps.
TEST(Layout, ChangesNothingInDoubleOverRandomShapes) {
  for (std::uint32_t seed = 1; seed <= trials(60U); ++seed) {
    RandomStudy random(seed);
    const Layout layout = random.layout();
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, kDouble);
    expect_same(train(random.study, layout, kDouble), alone, 1e-10, random.study.text() + "; " + layout.text());
  }
}

Study float_study() {
  Study study{.batch = 7, .tokens = 24, .logits_chunk = 50, .steps = 20, .learning_rate = 1e-4};
  study.config = small_config();
  study.config.num_attention_heads = 8;
  study.config.hidden_size = 64;
  study.config.vocab_size = 300;
  study.config.max_position_embeddings = 24;
  study.config.init_method_std = 0.02;
  return study;
}

TEST(Layout, ChangesNothingOnTheCpuWithinFloatRounding) {
  const Study study = float_study();
  const MakeBackend cpu = [] { return make_cpu_backend(); };
  const Result alone = train(study, {.micro_batch = 7}, cpu);
  for (const Layout& layout :
       {Layout{{.tensor = 2}, 7}, Layout{{.tensor = 4}, 7}, Layout{{.tensor = 8}, 7}, Layout{{.data = 2}, 4},
        Layout{{.data = 4}, 1}, Layout{{.tensor = 2, .data = 2}, 2}, Layout{{.tensor = 4, .data = 2}, 4, true},
        Layout{{.data = 4}, 2, false, true}, Layout{{.tensor = 2, .data = 3}, 1, true, true, Recompute::kFull}}) {
    expect_same(train(study, layout, cpu), alone, 1e-5, layout.text());
  }
}

// Equal operations on equal operands: not a bit differs, dropout included.
TEST(Layout, RecomputingActivationsChangesNoBit) {
  Study study{.config = small_config(), .batch = 4, .tokens = 6};
  study.config.hidden_dropout = study.config.attention_dropout = 0.2;
  for (const bool sequence_parallel : {false, true}) {
    for (const MakeBackend& make : {MakeBackend([] { return make_cpu_backend(); }),
                                    MakeBackend([] { return make_cpu_backend({.compute_dtype = DType::kBF16}); })}) {
      Layout layout{{.tensor = 3}, 2, sequence_parallel};
      const Result kept = train(study, layout, make);
      for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
        layout.recompute = recompute;
        const Result again = train(study, layout, make);
        EXPECT_EQ(again.losses, kept.losses) << layout.text();
        EXPECT_EQ(again.weights, kept.weights) << layout.text();
      }
    }
  }
}

// Where layers keep results of norms and activations, one layer of a cell or all, backward reads them instead of making
// them again.
TEST(Layout, KeepingActivationsChangesNoBit) {
  int compared = 0;
  for (std::uint32_t seed = 1; seed <= trials(60U); ++seed) {
    RandomPipeline random(seed);
    if (random.layout.recompute != Recompute::kNone) continue;
    if (seed % 4 == 1) random.study.become_llama(random.layout.mesh);
    if (seed % 4 == 2 && random.layout.slices.empty()) random.study.become_bert(ModelHead::kSpans, random.layout);
    const DType dtype = seed % 2 == 0 ? DType::kF32 : DType::kBF16;
    const MakeBackend make = [&] { return make_cpu_backend({.compute_dtype = dtype}); };
    random.layout.kept_layers = 0;
    const Result again = train(random.study, random.layout, make);
    for (const std::int64_t layers : {1, 2}) {
      random.layout.kept_layers = layers;
      const Result kept = train(random.study, random.layout, make);
      EXPECT_EQ(kept.losses, again.losses) << random.text();
      EXPECT_EQ(kept.weights, again.weights) << random.text();
    }
    ++compared;
  }
  EXPECT_GT(compared, static_cast<int>(trials(60U) / 12));
}

TEST(Layout, TheSameLayoutGivesTheSameBits) {
  Study study{.config = small_config(), .batch = 4, .tokens = 6};
  const MakeBackend cpu = [] { return make_cpu_backend(); };
  const Layout layout{{.tensor = 3, .data = 2}, 1, true, true, Recompute::kFull};
  const Result first = train(study, layout, cpu), second = train(study, layout, cpu);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.weights, second.weights);
}

TEST(Layout, GuardedMemoryIsTouchedOnlyByOperationsAndCommunicators) {
  Study study{.config = small_config(), .batch = 4, .tokens = 6};
  const Layout layout{{.tensor = 3, .data = 2}, 2, true, true};
  const Result plain = train(study, layout, [] { return make_cpu_backend(); });
  EXPECT_EQ(train(study, layout, [] { return make_cpu_backend({.guard_memory = true}); }).weights, plain.weights);
}

// bf16 keeps 8 bits of a value, so a partial sum is off by up to 2^-9 of itself, and which partial sums are rounded
// depends on the layout. Masters in fp32 keep ten steps within that of fp32's.
TEST(Layout, SixteenBitStorageStaysWithinItsRoundingOfFloat) {
  Study study = float_study();
  const Result exact = train(study, {.micro_batch = 7}, [] { return make_cpu_backend(); });
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const MakeBackend make = [&] { return make_cpu_backend({.compute_dtype = dtype}); };
    for (const Layout& layout :
         {Layout{{}, 7}, Layout{{.tensor = 2, .data = 3}, 1, true, true, Recompute::kFull}, Layout{{.tensor = 4}, 2}}) {
      const Result rounded = train(study, layout, make);
      expect_near(rounded.losses, exact.losses, 2e-3, layout.text() + ": losses");
      expect_near(rounded.weights, exact.weights, 2e-3, layout.text() + ": weights");
    }
  }
}

}  // namespace
}  // namespace teratron::testing
