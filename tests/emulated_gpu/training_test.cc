// Training on GPUs against training on the CPU: the back end that make_cuda_backend() makes, emulated or real, in
// layouts whose ranks share a device.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/trials.h"
#include "base/turn.h"
#include "model/bert.h"
#include "model/train_in_layout.h"

namespace teratron::testing {
namespace {

using pipeline::ScheduleKind;

// Heads of 64, which the tensor-core kernels take.
Study small_study() {
  Study study{.batch = 4, .tokens = 24, .logits_chunk = 20, .steps = 2, .learning_rate = 1e-4};
  study.config = small_config();
  study.config.num_layers = 2;
  study.config.num_attention_heads = 2;
  study.config.hidden_size = 128;
  study.config.vocab_size = 100;
  study.config.max_position_embeddings = 24;
  study.config.init_method_std = 0.02;
  study.config.hidden_dropout = study.config.attention_dropout = 0.1;
  return study;
}

std::vector<Layout> some_layouts() {
  return {{.micro_batch = 4},
          {.micro_batch = 2, .recompute = Recompute::kFull},
          {.mesh = {.tensor = 2}, .micro_batch = 4},
          {.mesh = {.tensor = 2}, .micro_batch = 1, .sequence_parallel = true, .recompute = Recompute::kSelective},
          {.mesh = {.data = 2}, .micro_batch = 1, .shard_optimizer = true},
          {.mesh = {.pipeline = 2}, .micro_batch = 1, .schedule = ScheduleKind::kSeq1F1B, .slices = {11, 9, 4}},
          {.mesh = {.tensor = 2, .pipeline = 2},
           .micro_batch = 2,
           .schedule = ScheduleKind::kTeraPipe,
           .slices = {17, 7},
           .defer_weight_gradients = true}};
}

// Layouts for one of two kinds of models: a third of them in the fast set of ./check, another with each commit.
std::vector<Layout> some_of(const std::vector<Layout>& layouts, bool second) {
  std::vector<Layout> some;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (has_its_turn(i + (second ? 1 : 0), 3)) some.push_back(layouts[i]);
  }
  return some;
}

MakeBackend cuda(DType dtype) {
  return [=] { return make_cuda_backend({.compute_dtype = dtype}); };
}

// On average over the weights, in terms of the learning rate, which is what AdamW's first steps move each by, whatever
// its gradient's size. Where that is rounding alone, two back ends may disagree on its sign: not a bound for each
// weight.
double mean_difference(const Result& a, const Result& b, const Study& study) {
  EXPECT_EQ(a.weights.size(), b.weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i) sum += std::abs(a.weights[i] - b.weights[i]);
  return sum / static_cast<double>(a.weights.size()) / study.learning_rate;
}

void expect_as_alone(const Study& study, const std::vector<Layout>& layouts, const Result& alone) {
  for (const Layout& layout : layouts) {
    const Result result = train(study, layout, cuda(DType::kF32));
    expect_near(result.losses, alone.losses, 1e-5, layout.text() + ": losses");
    expect_near(result.norms, alone.norms, 1e-4, layout.text() + ": norms");
    EXPECT_LT(mean_difference(result, alone, study), 1e-4) << layout.text();  // 2e-6 where this was written
  }
}

void expect_rounded(const Study& study, const Result& alone) {
  const Result rounded = train(study, {.micro_batch = 4}, cuda(DType::kBF16));
  expect_near(rounded.losses, alone.losses, 2e-3, "bf16: losses");
  EXPECT_LT(mean_difference(rounded, alone, study), 0.05);
}

TEST(GpuTraining, InAnyLayoutIsThatOfOneRankOnTheCpu) {
  const Study study = small_study();
  expect_as_alone(study, some_layouts(), train(study, {.micro_batch = 4}, [] { return make_cpu_backend(); }));
}

TEST(GpuTraining, KeptActivationsChangeNoBit) {
  Study study = small_study(), llama = study;
  llama.become_llama({});
  const auto expect_same_bits = [](Study of, Layout layout, DType dtype) {
    of.steps = 1;
    const Result again = train(of, layout, cuda(dtype));
    layout.kept_layers = 1;
    const Result kept = train(of, layout, cuda(dtype));
    EXPECT_EQ(kept.losses, again.losses) << layout.text();
    EXPECT_EQ(kept.weights, again.weights) << layout.text();
  };
  expect_same_bits(study, some_layouts().back(), DType::kBF16);
  expect_same_bits(llama, some_layouts().front(), DType::kF32);
}

// Storage of 8 or 11 bits of mantissa: losses as on the CPU (tests/model/layout_test.cc). Gradients that are off by
// 2^-8 of themselves turn AdamW's steps by less than that; the weights differ by 0.011 (bf16) and 0.0022 (f16) of a
// step where this was written.
TEST(GpuTraining, InSixteenBitsStaysWithinTheirRounding) {
  const Study study = small_study();
  const Result exact = train(study, {.micro_batch = 4}, [] { return make_cpu_backend(); });
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const Layout& layout : {some_layouts().front(), some_layouts().back()}) {
      const Result result = train(study, layout, cuda(dtype));
      expect_near(result.losses, exact.losses, 2e-3, layout.text() + ": losses");
      EXPECT_LT(mean_difference(result, exact, study), dtype == DType::kBF16 ? 0.05 : 0.01) << layout.text();
    }
  }
}

// Heads and inputs of other kinds, padding that differs from sequence to sequence, and both orders of norms.
TEST(GpuTraining, BertEqualsOneRankOnTheCpu) {
  for (const NormPlacement placement : {NormPlacement::kPre, NormPlacement::kPost}) {
    Study study = small_study();
    study.config.set_kind(ModelKind::kBert);
    study.config.norm_placement = placement;
    const Result alone = train(study, {.micro_batch = 4}, [] { return make_cpu_backend(); });
    std::vector<Layout> layouts;
    for (const Layout& layout : some_layouts()) {
      if (layout.slices.empty()) layouts.push_back(layout);
    }
    expect_as_alone(study, some_of(layouts, placement == NormPlacement::kPost), alone);
    expect_rounded(study, alone);
  }
}

// Fewer key heads than heads and than ranks, rotary positions, RMS norms, gates, norms of heads, and a window.
TEST(GpuTraining, LaterFamilyEqualsOneRankOnTheCpu) {
  for (const ModelKind kind : {ModelKind::kQwen3, ModelKind::kGptNeox}) {
    Study study = small_study();
    study.config.set_kind(kind);
    study.config.hidden_dropout = study.config.attention_dropout = 0.1;
    if (kind == ModelKind::kQwen3) {
      study.config.num_key_value_heads = 1;
      study.config.intermediate_size = 192;
      study.config.window = 9;
    }
    const Result alone = train(study, {.micro_batch = 4}, [] { return make_cpu_backend(); });
    expect_as_alone(study, some_of(some_layouts(), kind == ModelKind::kGptNeox), alone);
    expect_rounded(study, alone);
  }
}

// Micro-batches of whole groups of choices, spans whose rows ranks share, and the copies of turned logits.
TEST(GpuTraining, HeadsOfTasksEqualOneRankOnTheCpu) {
  std::size_t number = 0;
  for (const ModelHead head :
       {ModelHead::kClassification, ModelHead::kChoice, ModelHead::kSpans, ModelHead::kTokens, ModelHead::kVectors}) {
    for (Layout layout : {Layout{.micro_batch = 1}, Layout{.mesh = {.tensor = 2},
                                                    .micro_batch = 1,
                                                    .sequence_parallel = true,
                                                    .recompute = Recompute::kSelective}}) {
      const std::size_t turn = number + number / 2;  // of two heads after one another, different layouts
      ++number;
      if (!has_its_turn(turn, 2)) continue;
      Study study = small_study();
      study.batch = 2;
      study.config.num_layers = 1;
      study.become_bert(head, layout);
      // Negatives are of a micro-batch, so other ones are another loss.
      const std::int64_t micro_batch = head == ModelHead::kVectors ? layout.micro_batch : study.batch;
      const Result alone = train(study, {.micro_batch = micro_batch}, [] { return make_cpu_backend(); });
      const Result result = train(study, layout, cuda(DType::kF32));
      expect_near(result.losses, alone.losses, 1e-5, layout.text() + ": losses");
      expect_near(result.norms, alone.norms, 1e-4, layout.text() + ": norms");
      EXPECT_LT(mean_difference(result, alone, study), 1e-4) << layout.text();
      if (is_fast_set() && layout.sequence_parallel != (head == ModelHead::kSpans)) continue;
      const Result rounded = train(study, layout, cuda(DType::kBF16));
      // Cosines are rounded to 8 bits, and then count 20 times.
      expect_near(rounded.losses, alone.losses, head == ModelHead::kVectors ? 1e-2 : 2e-3, "bf16: losses");
    }
  }
}

// Whole sequences, of which cuDNN computes both passes, and slices, of which it computes the forward pass.
TEST(GpuTraining, WithAttentionByCudnnStaysWithinTheRoundingOfSixteenBits) {
  Study study = small_study();
  study.config.attention_dropout = 0;
  const MakeBackend cudnn = [] {
    return make_cuda_backend({.compute_dtype = DType::kBF16, .cudnn_attention = KernelUse::kRequired});
  };
  try {
    cudnn();
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  const Result exact = train(study, {.micro_batch = 4}, [] { return make_cpu_backend(); });
  for (const Layout& layout : {some_layouts().front(), some_layouts().back()}) {
    const Result result = train(study, layout, cudnn);
    expect_near(result.losses, exact.losses, 2e-3, layout.text() + ": losses");
    EXPECT_LT(mean_difference(result, exact, study), 0.05) << layout.text();
  }
}

TEST(GpuTraining, GivesTheSameBitsAgain) {
  const Study study = small_study();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Layout layout = some_layouts().back();
    const Result first = train(study, layout, cuda(dtype)), second = train(study, layout, cuda(dtype));
    EXPECT_EQ(first.losses, second.losses);
    EXPECT_EQ(first.weights, second.weights);
  }
}

// Passes of layers that are captured and launched again draw other masks in every iteration and for every micro-batch,
// as plain calls do, whatever the layout makes differ between them.
TEST(GpuTraining, ByGraphsGivesTheBitsOfPlainCalls) {
  Study study = small_study();
  study.batch = 3;  // which no micro-batch size divides
  study.steps = 3;
  study.config.hidden_size = 32;  // sizes change nothing of what is captured
  const auto with_graphs = [](bool graphs) -> MakeBackend {
    return [=] { return make_cuda_backend({.graphs = graphs}); };
  };
  for (const Layout& layout :
       {Layout{.micro_batch = 3},
        {.micro_batch = 2, .recompute = Recompute::kFull},
        {.mesh = {.data = 2}, .micro_batch = 1},
        {.mesh = {.pipeline = 2}, .micro_batch = 1, .schedule = ScheduleKind::kSeq1F1B, .slices = {11, 9, 4}},
        {.mesh = {.pipeline = 2}, .micro_batch = 2, .schedule = ScheduleKind::k1F1B, .defer_weight_gradients = true},
        {.mesh = {.pipeline = 2},
        .micro_batch = 1,
        .schedule = ScheduleKind::kVZeroBubble,
        .virtual_stages = 2,
        .slices = {11, 9, 4},
        .defer_weight_gradients = true}}) {
    study.config.num_layers = 2 * layout.virtual_stages;
    const Result plain = train(study, layout, with_graphs(false)), captured = train(study, layout, with_graphs(true));
    EXPECT_EQ(captured.losses, plain.losses) << layout.text();
    EXPECT_EQ(captured.weights, plain.weights) << layout.text();
  }
}

// One executor may be given batches of several seeds, with padding and without.
TEST(GpuTraining, ByGraphsDrawsByTheSeedAndSeesThePaddingOfItsBatch) {
  ModelConfig config = small_bert_config();
  config.hidden_dropout = config.attention_dropout = 0.1;
  const RandomBatch data(3, 7, config.vocab_size, 1, /*all_inputs=*/true);
  const auto losses_with = [&](bool graphs) {
    const auto gpu = make_cuda_backend({.graphs = graphs});
    Bert model(config);
    Executor executor(*gpu, model, {.batch = 3, .tokens = 7});
    executor.allocate();
    executor.initialize(11);
    std::vector<double> losses;
    for (int round = 0; round < 3; ++round) {
      for (const std::uint64_t seed : {1, 2}) {
        for (const bool padded : {true, false}) {
          MicroBatch batch = data.whole();
          batch.seed = seed;
          if (!padded) batch.key_lengths = {};
          losses.push_back(executor.forward_backward(batch).total());
        }
      }
    }
    return losses;
  };
  const std::vector<double> plain = losses_with(false);
  EXPECT_EQ(losses_with(true), plain);
  EXPECT_EQ(std::set<double>(plain.begin(), plain.end()).size(), 4U) << "they differ";
}

// Large enough for their algorithm to be timed, which leaves sums as they were: those of the CPU, and the same bits
// from a back end that finds the choice made.
TEST(GpuProducts, ThatAreTimedAgreeWithTheCpuAndRepeat) {
  constexpr std::int64_t kSize = 512;
  const auto sums = [](Backend& backend) {
    const Tensor weight(backend, DType::kF32, {kSize, kSize}), x(backend, DType::kF32, {kSize, kSize});
    backend.fill_normal(weight.ref(), {.seed = 1}, 0, 1);
    backend.fill_normal(x.ref(), {.seed = 2}, 0, 1);
    backend.linear_weight_gradient({.dweight = weight.ref(), .dy = x.ref(), .x = x.ref(), .accumulate = true});
    return values_of(backend, weight.ref());
  };
  const auto cpu = make_cpu_backend(), gpu = make_cuda_backend(), again = make_cuda_backend();
  if (gpu->processor() == "emulated") GTEST_SKIP() << "an emulated GPU takes minutes for them";
  const std::vector<double> expected = sums(*cpu), actual = sums(*gpu);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 5e-3) << i;
  EXPECT_EQ(sums(*again), actual);
}

}  // namespace
}  // namespace teratron::testing
