// Documents that share a sample, on GPUs against the CPU, and by captured graphs.
#include <gtest/gtest.h>

#include <set>

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

// One executor may be given batches with documents and without.
TEST(GpuDocuments, AreSeenByTheGraphsOfTheirBatchAlone) {
  ModelConfig config = small_config();
  config.hidden_dropout = config.attention_dropout = 0;
  RandomBatch data(3, 7, config.vocab_size, 1);
  data.add_documents(5, 1);
  const auto losses_with = [&](bool graphs) {
    const auto gpu = make_cuda_backend({.graphs = graphs});
    Decoder model(config, {});
    Executor executor(*gpu, model, {.batch = 3, .tokens = 7, .first_keys = true, .position_ids = true});
    executor.allocate();
    executor.initialize(11);
    std::vector<double> losses;
    for (int round = 0; round < 3; ++round) {
      for (const bool apart : {true, false}) {
        MicroBatch batch = data.whole();
        if (!apart) batch.first_keys = {};
        losses.push_back(executor.forward_backward(batch).total());
      }
    }
    return losses;
  };
  const std::vector<double> plain = losses_with(false);
  EXPECT_EQ(losses_with(true), plain);
  EXPECT_EQ(std::set<double>(plain.begin(), plain.end()).size(), 2U) << "they differ";
}

}  // namespace
}  // namespace teratron::testing
