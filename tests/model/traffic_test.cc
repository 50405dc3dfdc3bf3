// Exchanges of the ranks of a tensor-parallel group in one forward and backward pass, counted: calls and bytes.
#include <gtest/gtest.h>

#include "base/round_up.h"
#include "comm/launch.h"
#include "model/random_batch.h"
#include "pipeline/generators.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kBatch = 2, kTokens = 6, kRows = kBatch * kTokens;
constexpr int kRanks = 3;

Traffic traffic_since(const Traffic& before, const Communicator& group) {
  Traffic since = group.traffic();
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    since.counts[kind].calls -= before.counts[kind].calls;
    since.counts[kind].bytes -= before.counts[kind].bytes;
  }
  return since;
}

Traffic traffic_of_a_pass(const ExecutorOptions& options) {
  Traffic traffic;
  run_ranks({}, kRanks, [&](Communicator& world) {
    const auto backend = make_cpu_backend();
    auto mesh = std::make_shared<Mesh>(make_mesh(world, {.tensor = kRanks}));
    LanguageModel runner(*backend, small_config(), options, mesh);
    runner.allocate();
    runner.initialize(1);
    const Traffic before = mesh->tensor->traffic();
    runner.forward_backward(RandomBatch(kBatch, kTokens, small_config().vocab_size, 1).whole());
    if (world.rank() == 0) traffic = traffic_since(before, *mesh->tensor);
  });
  return traffic;
}

const std::int64_t kLayers = small_config().num_layers, kBytes = kRows * small_config().hidden_size * 4;

// Megatron-LM section 3: two all-reduces a layer forward, two backward, of batch x tokens x hidden values; around the
// layers one for the embedding and, in a single chunk of logits, three numbers a token and the gradient of the input.
TEST(Traffic, TensorParallelismSendsTheBytesOfThePaper) {
  Traffic traffic = traffic_of_a_pass({.batch = kBatch, .tokens = kTokens, .logits_chunk = kRows});
  const Traffic::Count expected{.calls = 4 * kLayers + 2 + 2, .bytes = (4 * kLayers + 2) * kBytes + 3 * kRows * 4};
  EXPECT_EQ(traffic[Collective::kAllReduce], expected);
  for (const Collective other : {Collective::kAllGather, Collective::kReduceScatter, Collective::kBroadcast}) {
    EXPECT_EQ(traffic[other].calls, 0);
  }
}

// Korthikanti et al. (arXiv 2205.05198) section 4.2.2: each of those all-reduces becomes a reduce-scatter and an
// all-gather, which together move as much; the inputs of the split layers, not kept, are gathered again in the backward
// pass. Gradients of the norms, which cover a rank's rows, are summed once a layer.
TEST(Traffic, SequenceParallelismGathersAndScattersInstead) {
  Traffic traffic =
      traffic_of_a_pass({.batch = kBatch, .tokens = kTokens, .logits_chunk = kRows, .sequence_parallel = true});
  const Traffic::Count scatters{.calls = 4 * kLayers + 2, .bytes = (4 * kLayers + 2) * kBytes};
  const Traffic::Count gathers{.calls = 6 * kLayers + 2, .bytes = (6 * kLayers + 2) * kBytes};
  EXPECT_EQ(traffic[Collective::kReduceScatter], scatters);
  EXPECT_EQ(traffic[Collective::kAllGather], gathers);
  const std::int64_t vector = round_up<std::int64_t>(small_config().hidden_size, 16) * 4;
  const Traffic::Count sums{.calls = kLayers + 1 + 2, .bytes = (4 * kLayers + 2) * vector + 3 * kRows * 4};
  EXPECT_EQ(traffic[Collective::kAllReduce], sums);
}

// A stage's residual stream goes to the next stage once, and its gradient back once, whatever the number of tensor-
// parallel ranks: each sends its part, and those that receive gather (Narayanan et al., arXiv 2104.04473, section 4.1).
TEST(Traffic, BetweenStagesIsOnePartOfTheStreamForEachTensorParallelRank) {
  constexpr int kTensor = kRanks, kStages = 2;
  for (const bool sequence_parallel : {false, true}) {
    SCOPED_TRACE(sequence_parallel);
    run_ranks({}, kTensor * kStages, [&](Communicator& world) {
      const auto backend = make_cpu_backend();
      auto mesh = std::make_shared<Mesh>(make_mesh(world, {.tensor = kTensor, .pipeline = kStages}));
      const ExecutorOptions options{
          .batch = kBatch,
          .tokens = kTokens,
          .schedule = pipeline::make_schedule(pipeline::ScheduleKind::kGpipe, {.stages = kStages}),
          .sequence_parallel = sequence_parallel};
      LanguageModel runner(*backend, small_config(), options, mesh);
      runner.allocate();
      runner.initialize(1);
      const Traffic before = mesh->tensor->traffic(), before_forward = mesh->pipeline->traffic(),
                    before_back = mesh->pipeline_back->traffic();
      runner.forward_backward(RandomBatch(kBatch, kTokens, small_config().vocab_size, 1).whole());
      const bool is_first = mesh->pipeline->rank() == 0;
      const Traffic::Count part{.calls = 1, .bytes = kBytes / kTensor}, none;
      const Traffic forward = traffic_since(before_forward, *mesh->pipeline),
                    back = traffic_since(before_back, *mesh->pipeline_back);
      EXPECT_EQ(forward[Collective::kSend], is_first ? part : none);
      EXPECT_EQ(forward[Collective::kReceive], is_first ? none : part);
      EXPECT_EQ(back[Collective::kSend], is_first ? none : part);
      EXPECT_EQ(back[Collective::kReceive], is_first ? part : none);
      if (sequence_parallel) return;  // whose layers gather, too
      const Traffic of_layers = traffic_since(before, *mesh->tensor);
      EXPECT_EQ(of_layers[Collective::kAllGather], (Traffic::Count{.calls = 1, .bytes = kBytes}));
    });
  }
}

}  // namespace
}  // namespace teratron::testing
