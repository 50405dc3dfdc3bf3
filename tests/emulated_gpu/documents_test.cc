// Documents that share a sample, on GPUs against the CPU, and by captured graphs.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>

#include "model/train_in_layout.h"

namespace teratron::testing {
namespace {

using pipeline::ScheduleKind;

Study packed_study() {
  Study study{.batch = 4, .tokens = 24, .logits_chunk = 20, .steps = 2, .learning_rate = 1e-4, .documents = true};
  study.config = small_config();
  study.config.num_attention_heads = 2;
  study.config.hidden_size = 32;
  study.config.max_position_embeddings = 24;
  study.config.init_method_std = 0.02;
  study.config.hidden_dropout = study.config.attention_dropout = 0.1;
  return study;
}

// Captured or not, in fp32 as on the CPU.
TEST(GpuDocuments, LearnInAnyLayoutWhatTheyLearnOnTheCpu) {
  const Study study = packed_study();
  const Result alone = train(study, {.micro_batch = 4}, [] { return make_cpu_backend(); });
  for (const Layout& layout :
       {Layout{.micro_batch = 4},
        {.mesh = {.tensor = 2}, .micro_batch = 1, .sequence_parallel = true, .recompute = Recompute::kSelective},
        {.mesh = {.pipeline = 2}, .micro_batch = 2, .schedule = ScheduleKind::kSeq1F1B, .slices = {11, 9, 4}}}) {
    const Result captured = train(study, layout, [] { return make_cuda_backend({.graphs = true}); });
    const Result plain = train(study, layout, [] { return make_cuda_backend({.graphs = false}); });
    expect_near(plain.losses, alone.losses, 1e-5, layout.text() + ": losses");
    expect_near(plain.norms, alone.norms, 1e-4, layout.text() + ": norms");
    EXPECT_EQ(captured.losses, plain.losses) << layout.text();
    EXPECT_EQ(captured.weights, plain.weights) << layout.text();
  }
}

// 16-bit types, whose usual kernels do not know documents: losses as close as tests of training without them ask.
TEST(GpuDocuments, InSixteenBitsStayWithinTheirRounding) {
  const Study study = packed_study();
  const Layout layout{.micro_batch = 4};
  const Result exact = train(study, layout, [] { return make_cpu_backend(); });
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Result result = train(study, layout, [=] { return make_cuda_backend({.compute_dtype = dtype}); });
    expect_near(result.losses, exact.losses, 2e-3, "losses");
  }
}

// Losses of three rounds of `batches` on one GPU, with its graphs or without.
std::vector<double> losses_of(const ModelConfig& config, std::span<const MicroBatch> batches, bool graphs) {
  const auto gpu = make_cuda_backend({.graphs = graphs});
  Decoder model(config, {});
  Executor executor(*gpu, model, {.batch = 3, .tokens = 7, .first_keys = true, .position_ids = true});
  executor.allocate();
  executor.initialize(11);
  std::vector<double> losses;
  for (int round = 0; round < 3; ++round) {
    for (const MicroBatch& batch : batches) losses.push_back(executor.forward_backward(batch).total());
  }
  return losses;
}

void expect_graphs_of_their_own(const ModelConfig& config, std::span<const MicroBatch> batches) {
  const std::vector<double> plain = losses_of(config, batches, false);
  EXPECT_EQ(losses_of(config, batches, true), plain);
  EXPECT_EQ(std::set<double>(plain.begin(), plain.end()).size(), batches.size()) << "they differ";
}

// One executor may be given batches with documents and without.
TEST(GpuDocuments, AreSeenByTheGraphsOfTheirBatchAlone) {
  ModelConfig config = small_config();
  config.hidden_dropout = config.attention_dropout = 0;
  RandomBatch data(3, 7, config.vocab_size, 1);
  data.add_documents(5, 1);
  MicroBatch whole = data.whole();
  whole.first_keys = {};
  expect_graphs_of_their_own(config, std::array{data.whole(), whole});
}

// A window gives each token a first key, with documents and without, so that only the positions tell them apart.
TEST(GpuDocuments, RotatePositionsByTheGraphsOfTheirBatchAlone) {
  ModelConfig config = small_config();
  config.set_kind(ModelKind::kLlama);
  config.hidden_dropout = config.attention_dropout = 0;
  config.window = 4;
  RandomBatch data(3, 7, config.vocab_size, 1);
  data.add_documents(5, 1);
  MicroBatch apart = data.whole(), whole = data.whole();
  apart.first_keys = whole.first_keys = whole.position_ids = {};
  expect_graphs_of_their_own(config, std::array{apart, whole});
}

// Dropout counts the padding that was cut off.
TEST(GpuDocuments, DropByTheGraphsOfTheirLengthAlone) {
  ModelConfig config = small_config();
  config.hidden_dropout = config.attention_dropout = 0.1;
  const RandomBatch data(3, 7, config.vocab_size, 1);
  MicroBatch cut = data.whole();
  cut.uncut_tokens = 9;
  expect_graphs_of_their_own(config, std::array{data.whole(), cut});
}

}  // namespace
}  // namespace teratron::testing
